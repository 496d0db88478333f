#!/bin/sh
# Makes the virtual environment and installs into it. Says in one sentence what is missing.
# Usage: setup.sh PYTHON VENV REQUIREMENT [STAMP-SUFFIX]
set -eu

python=$1
venv=$2
requirement=$3
suffix=${4:+-$4}
log=$venv/install.log

fail() {
    echo "setup: $1" >&2
    exit 2
}

command -v "$python" >/dev/null 2>&1 ||
    fail "'$python' was not found; install Python 3.11 or newer, or run make PYTHON=/path/to/python3.11"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version 2>&1) is too old; install Python 3.11 or newer, or run make PYTHON=/path/to/python3.11"
"$python" -c 'import venv, ensurepip' >/dev/null 2>&1 ||
    fail "this Python cannot make virtual environments; install its venv package (on Debian: python3-venv)"
"$venv/bin/python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("nes_py") is None)' >/dev/null 2>&1 ||
    command -v "${CXX:-c++}" >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 ||
    fail "no C++ compiler was found, and nes-py is built from source; install g++ (on Debian: build-essential)"

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip --version >/dev/null 2>&1 ||
    fail "$venv has no pip; run make clean and try again"
echo "setup: installing into $venv (the first time takes a minute or two; details in $log)"
if ! "$venv/bin/python" -m pip install --disable-pip-version-check -c constraints.txt -e "$requirement" >"$log" 2>&1; then
    if grep -qiE 'name resolution|connection (refused|broken|error)|network is unreachable|No matching distribution|Could not find a version|timed out|ProxyError|SSLError' "$log"; then
        fail "packages could not be downloaded; connect to the internet or set PIP_INDEX_URL to a mirror (or this Python is too new for them; details in $log)"
    fi
    if grep -qiE "Python\.h: No such file" "$log"; then
        fail "the headers of Python are missing; install them (on Debian: python3-dev)"
    fi
    fail "the installation failed; the last lines of $log say why: $(tail -n 1 "$log")"
fi
has_native_core() {
    "$venv/bin/python" -c 'import actor.env.native._console' >>"$log" 2>&1
}

if ! has_native_core; then
    # Once more and aloud: pip does not show why it went on without the extension.
    "$venv/bin/python" -m pip install --disable-pip-version-check -v --no-deps -e . >>"$log" 2>&1 || true
    has_native_core ||
        echo "setup: the native core could not be built ($log says why); nes_py, many times slower, takes its place"
fi
touch "$venv/.installed$suffix"
[ "$suffix" = "" ] || touch "$venv/.installed"
