"""Nothing of the user's is lost: caches in strange places, outputs over links, pipes, devices and others' files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import derive
from derive import cache
from derive.cli import group
from derive.errors import DeriveError
from derive.reports.build import check_places
from derive.verbs.tables import read_table
from effective_theory.files import OutputError, check_file, check_folder, write_file
from effective_theory.folders import MARK, ForeignFolder, own_folder
from numeric.errors import NumericError
from numeric.studies.resume import earlier_rows

MAIN = [sys.executable, "-c", "from derive.cli import main; main()"]


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Mode, inode and content of everything below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found[str(path)] = (status.st_mode, status.st_ino, content)
    return found


@pytest.fixture
def strange_places(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Where a cache was pointed at by mistake."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "thesis.txt").write_text("three years")
    (folder / "cache.db").write_text("not a database")
    taken = tmp_path / "taken"
    (taken / cache.FOLDER).mkdir(parents=True)
    (taken / cache.FOLDER / "thesis.txt").write_text("three years")
    file = tmp_path / "plain.txt"
    file.write_text("precious")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    elsewhere, linked = tmp_path / "elsewhere", tmp_path / "linked"
    elsewhere.mkdir()
    linked.mkdir()
    (linked / cache.FOLDER).symlink_to(elsewhere)
    shared = tmp_path / "shared"
    (shared / cache.FOLDER).mkdir(parents=True)
    (shared / cache.FOLDER).chmod(0o777)
    yield {"a folder": folder, "taken": taken, "file": file, "fifo": fifo, "link": linked, "shared": shared}


@pytest.mark.parametrize("place", ["taken", "file", "fifo", "link", "shared"])
def test_what_is_not_ours_switches_the_cache_off_with_one_warning(
    place: str, strange_places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(tmp_path)
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(strange_places[place]))
    cache._folder.cache_clear()
    with pytest.warns(cache.CacheWarning, match="not kept") as caught:
        assert [cache.recall("q", None, lambda: 1), cache.recall("q", None, lambda: 2)] == [1, 2]
    assert len(caught) == 1
    assert snapshot(tmp_path) == before


def test_a_folder_of_the_user_only_gains_our_own_subfolder(
    strange_places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(tmp_path)
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(strange_places["a folder"]))
    monkeypatch.setattr(cache, "_edited_meanwhile", lambda: False)
    assert [cache.recall("q", None, lambda: 1), cache.recall("q", None, lambda: 2)] == [1, 1]
    after = snapshot(tmp_path)
    assert {path: entry for path, entry in after.items() if path in before} == before
    assert all(cache.FOLDER in path for path in set(after) - set(before))


def test_a_home_that_is_missing_or_read_only(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "DERIVE_"))}
    for home in ("/proc/nowhere", "/dev/null", str(tmp_path / "not" / "yet")):
        done = subprocess.run(
            [*MAIN, "forward", "z"], env={**environment, "HOME": home}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 and "Traceback" not in done.stderr and done.stderr.count("\n") <= 1
    assert (tmp_path / "not" / "yet").is_dir()


def test_only_marked_folders_are_ours(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "new" / "place", "answers")
    assert (folder / MARK).exists() and stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0
    assert own_folder(tmp_path / "new" / "place", "answers") == folder
    (folder / "x.json").write_text("{}")
    (folder / MARK).unlink()
    with pytest.raises(ForeignFolder):
        own_folder(tmp_path / "new" / "place", "answers")


def test_links_are_written_through(tmp_path: Path) -> None:
    real, link, dangling = tmp_path / "real.txt", tmp_path / "link.txt", tmp_path / "dangling.txt"
    real.write_text("old")
    link.symlink_to(real)
    dangling.symlink_to(tmp_path / "born.txt")
    write_file(link, "new")
    write_file(dangling, "first")
    assert link.is_symlink() and real.read_text() == "new" and not real.is_symlink()
    assert dangling.is_symlink() and (tmp_path / "born.txt").read_text() == "first"


def test_pipes_and_devices_stay(tmp_path: Path) -> None:
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    write_file(fifo, b"x" * 200_000)
    reader.join(20)
    assert got == [b"x" * 200_000] and stat.S_ISFIFO(fifo.stat().st_mode)
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # a scratch node like /dev/null
        write_file(device, "gone")
    except PermissionError:
        pytest.skip("only root makes device nodes")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_standard_output_as_a_file(tmp_path: Path) -> None:
    code = "import sys; from effective_theory.files import write_file; write_file('/dev/stdout', 'from us\\n')"
    with (tmp_path / "out").open("w") as out:
        out.write("before\n")
        out.flush()
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() in ("before\nfrom us\n", "from us\n")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).stdout == b"from us\n"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o664])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(mode)
    write_file(target, "new")
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_files_follow_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_file(tmp_path / "new", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """A full disk, by the limit on the size of a file."""
    target = tmp_path / "file"
    target.write_text("old")
    code = (
        "import resource, signal, sys\nfrom effective_theory.files import write_file, OutputError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"try:\n    write_file({str(target)!r}, 'x' * 100000)\nexcept OutputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"Cannot write {target}:" in done.stdout
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["file"]


BAD_OUTPUTS = ["", "/proc/nowhere/x", "/dev/null/x", "x" * 435, "taken", "file/x", "a\x00b"]


@pytest.mark.parametrize("path", BAD_OUTPUTS)
@pytest.mark.parametrize(
    "command", ["generate tanh", "report tanh", "learnability relu", "ntk-study tanh", "scale-study tanh"]
)
def test_outputs_are_checked_before_the_work_begins(
    command: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    if command.startswith("generate"):
        (tmp_path / "taken").mkdir()
    else:
        (tmp_path / "taken").write_text("mine")
    before = snapshot(tmp_path)
    result = CliRunner().invoke(group, [*command.split(), "-o", path])
    assert isinstance(result.exception, DeriveError | OutputError), result.exception
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("command", ["predict", "kernel"])
@pytest.mark.parametrize("option", ["-o", "--plot"])
@pytest.mark.parametrize("path", BAD_OUTPUTS)
def test_tables_and_figures_are_checked_before_the_work_begins(
    command: str, option: str, path: str, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "data.csv").write_text("x,y\n1,2\n2,3\n")
    before = snapshot(tmp_path)
    place = path if path.startswith("/") or not path else str(tmp_path / path)
    words = [command, str(tmp_path / "data.csv"), "--test", str(tmp_path / "data.csv"), "--target", "y"]
    result = CliRunner().invoke(group, [*words, option, place])
    assert isinstance(result.exception, DeriveError | OutputError), result.exception
    assert snapshot(tmp_path) == before


def test_tables_that_do_not_end() -> None:
    with pytest.raises(DeriveError, match="more than 64 million"):
        read_table("/dev/zero")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"s.csv": "my,table\n1,2\n"}, "not a study of ours"),
        ({"s.png": "my picture"}, "not a study of ours"),
        ({"s.json": "my notes"}, "settings of a study"),
        ({"s.json": "[1]"}, "other settings"),
        ({"s.json": '{"depth": 4}', "s.csv": "width\n1\n"}, "other settings"),
        ({"s.json": '{"depth": 3}', "s.csv": "width\nwide\n"}, "has been changed"),
        ({"s.json": '{"depth": 3}', "s.csv": "height\n1\n"}, "has been changed"),
        ({"s.json": '{"depth": 3}', "s.csv": "width\n\x00\n"}, "has been changed"),
    ],
)
def test_studies_replace_only_their_own_files(files: dict[str, str], sentence: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    places = (tmp_path / "s.csv", tmp_path / "s.json", tmp_path / "s.png")
    with pytest.raises(NumericError, match=sentence):
        earlier_rows(*places, {"depth": 3}, lambda line: int(line["width"]))


def test_studies_go_on_where_they_stopped(tmp_path: Path) -> None:
    table, settings, figure = (tmp_path / f"s.{end}" for end in ("csv", "json", "png"))
    assert earlier_rows(table, settings, figure, {"depth": 3}, dict) == []
    settings.write_text('{"depth": 3}')
    assert earlier_rows(table, settings, figure, {"depth": 3}, dict) == []  # stopped before the first rows
    table.write_text("width\n64\n")
    assert earlier_rows(table, settings, figure, {"depth": 3}, dict) == [{"width": "64"}]


def test_check_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot write .*file/x"):
        check_file(tmp_path / "file" / "x")
    with pytest.raises(OutputError, match="not a folder"):
        check_folder(tmp_path / "file")
    assert check_file(tmp_path / "new" / "deep.txt") and not (tmp_path / "new").exists()


def test_reports_do_not_replace_what_is_not_a_report(tmp_path: Path) -> None:
    (tmp_path / "tanh.html").write_text("<html>my page</html>")
    with pytest.raises(DeriveError, match="not a report of ours"):
        check_places(["tanh"], tmp_path, ["html"])
    (tmp_path / "relu.pdf").write_text("%PDF- my thesis")
    with pytest.raises(DeriveError, match=r"relu\.pdf exists and is not a report of ours"):
        derive.report(["relu"], tmp_path, pdf=True)
    result = CliRunner().invoke(group, ["report", "tanh", "-o", str(tmp_path)])
    assert isinstance(result.exception, DeriveError)
    assert (tmp_path / "tanh.html").read_text() == "<html>my page</html>"


def test_learnability_keeps_the_files_of_other_questions(tmp_path: Path) -> None:
    questions = [["--samples", "2"], ["--samples", "3"], ["--samples", "2", "--lambda-W", "2"]]
    for k, options in enumerate(questions):
        command = ["learnability", "relu", "--dimension", "3", "--depth", "2", "-o", str(tmp_path), *options]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = CliRunner().invoke(group, command)
        assert result.exit_code == 0, result.exception
        assert len(list(tmp_path.glob("*.csv"))) == k + 1
