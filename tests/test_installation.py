"""A wheel and an sdist are built, and what is installed from the wheel works outside of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(call: list[str], cwd: Path, **options) -> str:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMERIC_CACHE_DIR")}
    done = subprocess.run(call, cwd=cwd, env=clean, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Both distributions, from a copy of what git knows: nothing that merely lies about gets in."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    files = run(["git", "ls-files"], ROOT).splitlines()
    chosen = [f for f in files if f.split("/")[0] in ("derive", "numeric", "effective_theory") or "/" not in f]
    for name in chosen:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    pytest.importorskip("build")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)], copy)
    return out


@pytest.mark.slow
def test_the_wheel_in_an_empty_environment(built, tmp_path):
    """A fresh venv that sees the dependencies of this one but neither the checkout nor its editable installation."""
    wheel = next(built.glob("*.whl"))
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"derive/py.typed", "numeric/py.typed", "derive/explorer/page/index.html"} <= names
    assert any(n.startswith("derive/reports/vendor/") for n in names) and any("licenses/LICENSE" in n for n in names)
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], tmp_path)
    site = Path(run([str(python), "-c", "import site; print(site.getsitepackages()[0])"], tmp_path).strip())
    ours = [Path(p) for p in sys.path if p.endswith("site-packages")]
    here = tmp_path / "work"
    here.mkdir()
    (here / "data.csv").write_text("a,b,y\n1,0,1\n0,1,-1\n")
    (here / "test.csv").write_text("a,b\n0.6,0.8\n")
    head = f"import sys; sys.path += {[str(p) for p in ours]!r}; "  # dependencies only: no .pth file is read
    where = run([str(python), "-c", head + "import derive, numeric; print(derive.__file__, numeric.__file__)"], here)
    assert all(str(site) in place for place in where.split())
    command = head + "from derive.cli import main; sys.argv[0] = 'derive'; main()"
    run([str(python), "-c", command, "report", "linear", "-o", "reports"], here)
    assert "MathJax" in (here / "reports" / "linear.html").read_text()
    flow = head + "from numeric import flow; print(flow('gelu', [[1.0, 0.5]], depth=3, C_b=0.1, C_W=1.9).Theta.shape)"
    assert run([str(python), "-c", flow], here) == "(1, 1)\n"
    options = ["data.csv", "--test", "test.csv", "--target", "y", "--infinite", "--json"]
    assert '"mean_infinite"' in run([str(python), "-c", command, "predict", *options], here)


@pytest.mark.slow
def test_the_sdist_is_whole(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as file:
        names = file.getnames()
    for wanted in ("LICENSE", "README.md", "pyproject.toml", "derive/py.typed", "numeric/generated/tanh.py"):
        assert any(name.endswith(f"/{wanted}") for name in names), wanted


def test_project_files():
    """What others look for is there and agrees."""
    import tomllib

    import derive

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0" and "Typing :: Typed" in project["classifiers"] and project["urls"]
    license_text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in license_text and "END OF TERMS AND CONDITIONS" in license_text
    assert f"version: {derive.__version__}" in (ROOT / "CITATION.cff").read_text()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "docs/extending.md", "derive/py.typed", "numeric/py.typed"):
        assert (ROOT / name).is_file(), name
