"""The gallery: each docs/gallery/*.py is a title, a caption and at most five lines of code, run at the build."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "gallery"


@dataclass(frozen=True)
class Picture:
    """One entry: its source without the docstring, run to give Matplotlib axes."""

    name: str
    title: str
    caption: str
    code: str

    @property
    def lines(self) -> int:
        """Lines of code that are not imports."""
        tree = ast.parse(self.code)
        return sum(1 for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))

    def draw(self):
        """The axes that the last line gives."""
        tree = ast.parse(self.code)
        last = tree.body.pop()
        assert isinstance(last, ast.Expr)
        names: dict[str, object] = {}
        exec(compile(tree, self.name, "exec"), names)
        return eval(compile(ast.Expression(last.value), self.name, "eval"), names)


def pictures() -> list[Picture]:
    found = []
    for path in sorted(HERE.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        text = ast.get_docstring(ast.parse(source)) or ""
        title, _, caption = text.partition("\n\n")
        code = source[source.index('"""', 3) + 3 :].strip() + "\n"
        found.append(Picture(path.stem, title, " ".join(caption.split()), code))
    return found


def write_gallery(folder: Path) -> Path:
    """The page and its figures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    text = "# Gallery\n\nEach picture is one call; the code is complete, and run when this site is built.\n"
    for picture in pictures():
        axes = picture.draw()
        target = folder / "gallery" / f"{picture.name}.svg"
        target.parent.mkdir(parents=True, exist_ok=True)
        axes.figure.savefig(target, transparent=True, metadata={"Date": None})
        pyplot.close("all")
        text += (
            f"\n## {picture.title}\n\n![{picture.title}](gallery/{picture.name}.svg)\n\n{picture.caption}\n\n"
            f"```python\n{picture.code}```\n"
        )
    page = folder / "gallery.md"
    page.write_text(text, encoding="utf-8")
    return page
