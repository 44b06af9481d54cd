"""Kernels: compiled once, found again in the cache, and compiled anew when what they run changes."""

from __future__ import annotations

import dis
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest

import keima
from keima import places
from keima.jit import instantiate, store
from keima.jit.digest import digest_of
from keima.jit.kernel import Kernel
from keima.systems.alphago import inputs as alphago
from keima.systems.system import list_encodings

RECURSIVE = {"_perft", "is_true_eye", "_succeeds", "forced_mate"}


def all_kernels() -> set[Kernel]:
    """Every kernel of the package."""
    package = Path(keima.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        if "njit" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            values = vars(import_module(name.removesuffix(".__init__"))).values()
            found |= {value for value in values if isinstance(value, Kernel)}
    return found


def calls(kernel: Kernel) -> set[Kernel]:
    """The kernels that a kernel calls by their names."""
    function = kernel.py_func
    read = (step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL")
    named = (function.__globals__.get(name) for name in read)
    return {value for value in named if isinstance(value, Kernel)}


def reached(start: Kernel) -> set[Kernel]:
    """The kernels that a kernel calls, directly or not."""
    found: set[Kernel] = set()
    waiting = [start]
    while waiting:
        new = calls(waiting.pop()) - found
        found |= new
        waiting.extend(new)
    return found


def test_no_kernels_call_each_other_in_a_circle() -> None:
    """Numba's cache cannot bring such back: the program crashes on its second start."""
    kernels = all_kernels()
    assert len(kernels) > 100
    below = {kernel: reached(kernel) for kernel in kernels}
    assert {(a.__name__, b.__name__) for a in kernels for b in below[a] if a is not b and a in below[b]} == set()
    assert {kernel.__name__ for kernel in kernels if kernel in below[kernel]} <= RECURSIVE


def test_every_kernel_has_a_digest() -> None:
    """One that reads something unknown would only fail when it is called."""
    for kernel in all_kernels():
        assert digest_of(kernel.py_func)


def test_a_kernel_that_calls_itself_has_one_version() -> None:
    alphago.AlphaGoEncoding().encode([keima.go.Position.start(9)])
    assert len(alphago._succeeds._inner.signatures) <= 1  # none where its caller came from the cache


# --- Kernels of our own, in files of our own --------------------------------------------------------------------------

SOURCE = """
import numpy as np
from keima.jit import njit

ONE = 1
ROW = np.dtype([("a", np.int32), ("b", np.int16, (4,))])

@njit
def add(a, b):
    return a + b

@njit
def twice(a):
    return add(a, a)

@njit
def next_one(a):
    return a + ONE

@njit
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)

@njit
def six(a):
    return factorial(3) + a

@njit
def tables():
    return np.empty(3, ROW), np.zeros(2, np.int8)

def template(a):
    return change(a)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache is empty, and in a folder of the test's."""
    monkeypatch.setattr(store.config, "CACHE_DIR", str(tmp_path / "cache"))
    store.folder_of.cache_clear()
    monkeypatch.setattr(places, "_listeners", [])
    monkeypatch.setattr(places, "_said", set())
    return tmp_path


@pytest.fixture
def module(place: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Import a source anew, as a process of its own would: under one name, with no memory of the last time."""
    numbers = count()

    def load(source: str) -> ModuleType:
        path = place / f"{next(numbers)}" / "some_kernels.py"
        path.parent.mkdir()
        path.write_text(source, encoding="utf-8")
        spec = spec_from_file_location("some_kernels", path)
        assert spec is not None
        assert spec.loader is not None
        made = module_from_spec(spec)
        sys.modules["some_kernels"] = made
        spec.loader.exec_module(made)
        return made

    yield load
    sys.modules.pop("some_kernels", None)
    store.folder_of.cache_clear()


def was_compiled(kernel: object) -> bool:
    """In this process, rather than found in the cache."""
    return bool(kernel._inner.signatures)  # type: ignore[attr-defined]


def test_a_kernel_is_found_again(module: Callable[[str], ModuleType]) -> None:
    first, second = module(SOURCE), module(SOURCE)
    for made in (first, second):
        assert [made.twice(4), made.next_one(4), made.six(4), made.twice(1.25)] == [8, 5, 10, 2.5]
    assert was_compiled(first.twice)
    assert not was_compiled(second.twice)
    assert not was_compiled(second.six)


def test_arrays_are_given_back(module: Callable[[str], ModuleType]) -> None:
    for _ in range(2):
        rows, zeros = module(SOURCE).tables()
        assert (rows.shape, rows.dtype.names, zeros.tolist()) == ((3,), ("a", "b"), [0, 0])


def test_what_came_with_the_installation_needs_no_compiler(
    module: Callable[[str], ModuleType], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `keima.precompile` makes it, for a processor that others share."""
    if store.ready_level() is None:
        pytest.skip("nothing is compiled ahead for this kind of processor")
    (place / "built").mkdir()
    (place / "built" / "some_kernels.py").write_text(SOURCE, encoding="utf-8")
    target = {"NUMBA_CPU_NAME": store.ready_level(), "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(place / "ready")}
    paths = os.pathsep.join([str(place / "built"), str(Path(keima.__file__).parents[1])])
    command = [sys.executable, "-c", "import some_kernels; some_kernels.twice(4)"]
    subprocess.run(command, env={**os.environ, **target, "PYTHONPATH": paths}, check=True)  # type: ignore[dict-item]
    monkeypatch.setattr(store, "READY", place / "ready")
    made = module(SOURCE)
    assert made.twice(4) == 8
    assert not was_compiled(made.twice)
    edited = module(SOURCE.replace("return a + b", "return a - b"))
    assert edited.twice(4) == 0
    assert was_compiled(edited.twice)


def test_an_edit_recompiles_what_it_touches(module: Callable[[str], ModuleType]) -> None:
    before = module(SOURCE)
    before.twice(4), before.next_one(4)
    edited = module(SOURCE.replace("return a + b", "return a + b + 0 * b + 1"))
    assert edited.twice(4) == 9
    assert edited.next_one(4) == 5
    assert was_compiled(edited.twice)
    assert not was_compiled(edited.next_one)


def test_a_constant_is_part_of_what_a_kernel_runs(module: Callable[[str], ModuleType]) -> None:
    before = module(SOURCE)
    before.twice(4), before.next_one(4)
    edited = module(SOURCE.replace("ONE = 1", "ONE = 10"))
    assert edited.next_one(4) == 14
    assert was_compiled(edited.next_one)
    edited.twice(4)
    assert not was_compiled(edited.twice)


def test_digests_tell_what_is_run_and_nothing_else(module: Callable[[str], ModuleType]) -> None:
    plain = module(SOURCE)
    documented = SOURCE.replace("def twice(a):", 'def twice(a):\n    """Told."""')
    spaced = module("\n\n# a comment\n" + documented)
    reworded = module(documented.replace("Told", "Said"))
    edited = module(SOURCE.replace("a + b", "a - b"))
    assert digest_of(plain.add.py_func) == digest_of(spaced.add.py_func)
    assert digest_of(spaced.twice.py_func) == digest_of(reworded.twice.py_func)
    assert digest_of(plain.twice.py_func) != digest_of(edited.twice.py_func)
    assert digest_of(plain.next_one.py_func) == digest_of(edited.next_one.py_func)


def test_a_kernel_that_moves_to_another_file_is_another(module: Callable[[str], ModuleType]) -> None:
    """What is kept names the modules of its kernels, which have to be there when it is loaded."""
    here = module(SOURCE).twice.py_func
    there = FunctionType(here.__code__, here.__globals__, here.__name__)
    there.__module__ = "elsewhere"
    assert digest_of(here) != digest_of(there)


def test_what_has_no_digest_is_refused(module: Callable[[str], ModuleType]) -> None:
    made = module("from keima.jit import njit\nTHINGS = [1, 2]\n@njit\ndef first():\n    return THINGS[0]\n")
    with pytest.raises(TypeError, match=r"'THINGS', a list"):
        made.first()


def test_integers_of_all_sizes_share_a_version(module: Callable[[str], ModuleType]) -> None:
    made = module(SOURCE)
    for number in (3, np.int8(3), np.int32(3)):
        assert made.twice(number) == 6
    assert len(made.twice.signatures) == 1
    assert made.twice(np.uint64(2**63 - 1)) == 2**64 - 2  # unsigned ones count otherwise
    assert made.add(0.1, 0.2) == 0.1 + 0.2


def test_one_source_with_other_callees(module: Callable[[str], ModuleType]) -> None:
    for made in (module(SOURCE), module(SOURCE)):
        doubling = instantiate(made.template, "doubling", change=made.twice)
        counting = instantiate(made.template, "counting", change=made.next_one)
        assert [doubling(7), counting(7)] == [14, 8]
        assert digest_of(doubling.py_func) != digest_of(counting.py_func)
    assert not was_compiled(doubling)
    with pytest.raises(TypeError, match="template reads no turn"):
        instantiate(made.template, "turning", turn=made.twice)


def test_a_file_cut_short_is_made_again(module: Callable[[str], ModuleType], place: Path) -> None:
    assert module(SOURCE).twice(4) == 8
    (file,) = (place / "cache").glob("*.nbc")
    file.write_bytes(file.read_bytes()[:100])
    again = module(SOURCE)
    assert again.twice(4) == 8
    assert was_compiled(again.twice)
    assert not was_compiled_after(module(SOURCE))


def was_compiled_after(made: ModuleType) -> bool:
    made.twice(4)
    return was_compiled(made.twice)


def test_an_edit_leaves_no_old_file(module: Callable[[str], ModuleType], place: Path) -> None:
    for number in (1, 2, 3):
        module(SOURCE.replace("ONE = 1", f"ONE = {number}")).next_one(4)
    assert len(list((place / "cache").glob("some_kernels.next_one*"))) == 1


def test_compiling_is_said_once(module: Callable[[str], ModuleType]) -> None:
    lines: list[str] = []
    places.on_notice(lines.append)
    made = module(SOURCE)
    made.twice(4), made.next_one(4)
    assert len(lines) == 1
    assert lines[0].startswith("compiling kernels for this machine, once")
    places._said.clear()
    module(SOURCE).twice(4)
    assert len(lines) == 1, "nothing was compiled"


def test_where_nothing_can_be_written_a_private_folder_serves(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither beside the source nor in a home: root writes everywhere, so files stand where folders would."""
    lines: list[str] = []
    places.on_notice(lines.append)
    (place / "__pycache__").write_text("")
    (place / "home").write_text("")
    (place / "tmp").mkdir()
    monkeypatch.setattr(store.config, "CACHE_DIR", "")
    for name in ("XDG_CACHE_HOME", "KEIMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.setattr(places.tempfile, "tempdir", str(place / "tmp"))
    places.temporary.cache_clear()
    folder = store.folder_of(str(place / "kernels.py"))
    assert folder.parents[1] == place / "tmp"
    folder = folder.parent
    assert folder.stat().st_mode & 0o077 == 0
    assert store.folder_of(str(place / "home" / "others.py")).parent == folder == places.cache_folder()
    wanted = place / "home" / ".cache" / "keima"
    told = f"what is compiled cannot be kept in {wanted}: using {folder} (KEIMA_CACHE chooses another)"
    assert lines == [told], "once for all that is kept"
    monkeypatch.setattr(store.config, "CACHE_DIR", str(place / "__pycache__"))  # NUMBA_CACHE_DIR
    store.folder_of.cache_clear()
    assert store.folder_of(str(place / "kernels.py")) == folder
    assert lines[1:] == [f"what is compiled cannot be kept in {place / '__pycache__'}: using {folder} "
                         "(NUMBA_CACHE_DIR chooses another)"]  # fmt: skip
    folder.chmod(0o777)  # someone else could have put machine code there
    places.temporary.cache_clear()
    assert places.temporary() != folder
    places.temporary.cache_clear()


def test_without_numba_kernels_are_plain_functions() -> None:
    code = "from keima.jit import njit\nprint(njit(lambda a: a + 1)(1))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True
    )
    assert done.stdout == "2\n", done.stderr


def test_a_wheel_s_kernels_are_compiled_with_what_builds_it() -> None:
    """Without PyTorch and the rest, for `pip wheel` installs `build-system.requires` alone."""
    project = (Path(keima.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    building, running = (
        set(re.findall(r'"([a-z]+)', re.search(rf"^{name} = \[(.*?)\]", project, re.MULTILINE | re.DOTALL)[1]))  # type: ignore[index]
        for name in ("requires", "dependencies")
    )
    assert {"torch", "typer"} <= running - building
    program = f"""if True:
        import sys
        sys.modules.update(dict.fromkeys({sorted(running - building)}))
        from keima import precompile
        for system, name in precompile.works():
            precompile.work(system, name)
            print(name)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(list_encodings())
