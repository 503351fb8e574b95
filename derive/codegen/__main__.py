"""`python -m derive.codegen`: renew the committed modules under numeric/generated/ (`make generate`)."""

from pathlib import Path

from derive.codegen.builtin import builtin_modules
from derive.codegen.module import write

FOLDER = Path(__file__).resolve().parents[2] / "numeric" / "generated"


def main() -> None:
    for name, source in builtin_modules().items():
        path = FOLDER / f"{name}.py"
        if not path.exists() or path.read_text(encoding="utf-8") != source:
            print(f"writing {write(source, path)}")


if __name__ == "__main__":
    main()
