# Sourced by ./run and ./test: makes .venv beside them with keima and its tested dependencies, once per change of those.
# $1: extras to install, e.g. "dev" (may be empty). Leaves the interpreter's path in $PYTHON.
set -eu

find_python() {
    for candidate in ${KEIMA_PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10 python; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "keima needs Python 3.10 to 3.13; none was found (set KEIMA_PYTHON to one)" >&2
    return 1
}

# On Linux most indexes' PyTorch brings CUDA (6 GB on the disk); keima needs none of it. KEIMA_TORCH=cuda asks for it.
# In turn: the index's own CPU build; the CPU build from where PyTorch keeps it, which uv knows; the index's plain build if
# it brings no CUDA. Otherwise nothing is installed, but with KEIMA_TORCH=any what there is.
install_torch() {
    if [ "${KEIMA_TORCH:-cpu}" = cuda ] || [ "$(uname -s)" != Linux ] || "$PYTHON" -c 'import torch' 2>/dev/null; then
        return
    fi
    version=$(sed -n 's/^torch==//p' constraints.txt)
    "$PYTHON" -m pip install $quiet -c constraints.txt "torch==$version+cpu" 2>/dev/null && return
    "$PYTHON" -m pip install $quiet uv && "$PYTHON" -m uv pip install --quiet --python "$PYTHON" --torch-backend cpu \
        --no-deps "torch==$version" && return
    [ "${KEIMA_TORCH:-cpu}" != any ] || return 0
    planned=$("$PYTHON" -m pip install $quiet --dry-run --report - -c constraints.txt "torch==$version") || return
    case "$planned" in
        *'"nvidia'*)
            echo "no CPU build of PyTorch can be reached, and the one that can brings CUDA, 6 GB." >&2
            echo "KEIMA_TORCH=cuda $0 takes it; or install a CPU build into .venv yourself and start again." >&2
            exit 2 ;;
    esac
}

setup_environment() {
    extras=$1
    if [ ! -x .venv/bin/python ]; then
        base=$(find_python) || exit 2
        "$base" -m venv .venv 2>/dev/null || "$base" -m virtualenv -q .venv || {
            echo "cannot make .venv: install your system's python3-venv package (or virtualenv) and try again" >&2
            exit 2
        }
    fi
    PYTHON=$PWD/.venv/bin/python
    wanted=$(cat pyproject.toml constraints.txt | cksum)
    stamp=.venv/keima-installed${extras:+-$extras}
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        echo "installing keima and what it needs into .venv (once, some minutes) ..." >&2
        quiet="--quiet --disable-pip-version-check"
        install_torch
        "$PYTHON" -m pip install $quiet -c constraints.txt -e ".${extras:+[$extras]}"
        "$PYTHON" -m keima.precompile || true  # otherwise their first use compiles them
        echo "$wanted" > "$stamp"
    fi
}
