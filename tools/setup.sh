#!/bin/sh
# Set up .venv as requirements.lock says, or do nothing when it is so already.
#
# PYTHON names the interpreter to build it with (default: python3). The stamp .venv/ready is written last;
# without it, or when it tells of another lock, place or Python, .venv is built anew.
set -eu
cd "$(dirname "$0")/.."
# Some characters break a tool that takes the path for code, a list of paths or a pattern.
case $(pwd -P) in
*[][\"\$\`\\:\*\?\{\}\<\>\|[:cntrl:]]*)
    printf 'Set-up stopped: the path of this folder has a character that tools cannot take:\n  %s\n' "$(pwd -P)" >&2
    printf '  %s\n' 'Not allowed are " $ ` \ : * ? [ ] { } < > | and control characters.' \
        "Move or rename the folder, and run the same command again." >&2
    exit 1
    ;;
esac
log=.venv/setup.log

say() { printf '%s\n' "$*"; }

stop() {
    printf '\nSet-up stopped: %s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
    exit 1
}

# Version and home of an interpreter, as in "3.11 /usr"; fails when it does not start.
identity() {
    "$1" -c 'import sys; print("%d.%d " % sys.version_info[:2] + getattr(sys, "base_prefix", ""))' 2>/dev/null
}

new_enough() {
    [ "${1%%.*}" -gt "${needed%.*}" ] ||
        { [ "${1%%.*}" -eq "${needed%.*}" ] && [ "${1#*.}" -ge "${needed#*.}" ]; }
}

check_python() {
    needed=$(sed -n 's/^requires-python = ">=\([0-9.]*\)"$/\1/p' pyproject.toml)
    found=$(identity "$python") || stop "$python was not found, or does not start." \
        "Python $needed or newer is needed. On Debian: apt-get install python3 python3-venv" \
        "Where it has another name: make setup PYTHON=/path/to/python3"
    found=${found%% *}
    ! new_enough "$found" || return 0
    for name in python3.15 python3.14 python3.13 python3.12 python3.11 /path/to/python3; do
        ! other=$(identity "$name") || ! new_enough "${other%% *}" || break
    done
    stop "$python is Python $found, and $needed or newer is needed." "Name another: make setup PYTHON=$name"
}

# Run a step with its output in the log; when it fails show the end of it and what to do.
step() {
    "$@" </dev/null >>"$log" 2>&1 || {
        grep -vE '^(Collecting|Installing| +(Downloading|Using cached))|is ignored: it is neither|^ *$' "$log" |
            tail -n 8 | sed 's/^/  | /' >&2
        advise "$1"
    }
}

advise() {
    # On a full disk the log may be empty: try to write.
    if grep -qE 'No space left on device|Disk quota exceeded' "$log" ||
        ! head -c 100000 /dev/zero >.venv/probe 2>/dev/null; then
        stop "the disk is full." "About 1 GB is needed here, and 0.5 GB for a while in \$TMPDIR or /tmp." \
            "Free some, or point TMPDIR elsewhere, and run the same command again."
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        stop "a package is not the one that requirements.lock names." \
            "A proxy or a mirror may have changed it, or a download was cut short." \
            "Empty pip's cache ($python -m pip cache purge) and run the same command again."
    elif grep -qE 'Retrying \(Retry|Could not fetch URL|ProxyError|Connection broken|timed out' "$log"; then
        stop "the package index could not be reached." \
            "See to the network, or tell pip of a proxy or a mirror (HTTPS_PROXY, PIP_INDEX_URL)," \
            "and run the same command again. What was fetched is kept in pip's cache."
    elif grep -q 'No matching distribution found' "$log"; then
        stop "the package index has no fitting release of a package." \
            "Another Python may do (make setup PYTHON=/path/to/python3), or another index (PIP_INDEX_URL)."
    elif [ "$1" = make_venv ] || [ "$1" = get_pip ]; then
        stop "$python cannot make a virtual environment with pip." "On Debian: apt-get install python3-venv" \
            "Or use another Python: make setup PYTHON=/path/to/python3"
    else
        stop "the last lines above tell why; $log has them all."
    fi
}

make_venv() { "$python" -m venv --without-pip .venv; }

# The locked pip comes first, by the interpreter's pip, or by the one that Python bundles.
# The network is tried three times; pip's own patience is minutes.
get_pip() {
    sed -n '/^pip==/,/[^\\]$/p' requirements.lock >.venv/pip.lock
    if "$python" -m pip --python .venv/bin/python --version; then
        "$python" -m pip --python .venv/bin/python $install --requirement .venv/pip.lock
    else
        .venv/bin/python -m ensurepip && .venv/bin/python -m pip $install --requirement .venv/pip.lock
    fi
}
install="install --retries ${PIP_RETRIES:-2} --no-compile --no-deps --require-hashes"
packages() { .venv/bin/python -m pip $install --requirement requirements.lock; }
project() { .venv/bin/python -m pip install --no-deps --no-build-isolation --editable .; }

# On all cores, which pip's own compiling does not use, and without the packages' tests.
bytecode() { .venv/bin/python -m compileall -q -j 0 -x '/tests?/' .venv/lib || true; }

# Two set-ups at once would build over each other.
if [ -w requirements.lock ] && command -v flock >/dev/null; then
    exec 9>>requirements.lock
    flock -n 9 || { say "Another set-up is at work in this folder; waiting for it." && flock 9; }
fi

# Settings of tools, at the end of pyproject.toml, change nothing in .venv.
made_for="$(pwd -P) | $(cksum <requirements.lock) | $(sed '/^\[tool\./,$d' pyproject.toml | cksum)"
inside=$(identity .venv/bin/python) || inside=
asked=$inside
[ -z "${PYTHON:-}" ] || asked=$(identity "$PYTHON") || asked=
ready=$(cat .venv/ready 2>/dev/null) || ready=
if [ -n "$inside" ] && [ "$inside" = "$asked" ] && [ "$ready" = "$inside | $made_for" ]; then
    exit 0
fi

python=${PYTHON:-python3}
check_python
if [ -e .venv ] || [ -L .venv ]; then
    runs=$(.venv/bin/python bqlib/running/alive.py 2>/dev/null) || runs=
    [ -z "$runs" ] || stop ".venv is out of date, and a run is using it:" "$runs" "Wait for it, or stop it first."
    if [ -n "$ready" ]; then
        say "Removing .venv: requirements.lock, pyproject.toml, Python or this folder is not what it was made for."
    else
        say "Removing .venv: its set-up was cut short."
    fi
    # Of a link only the link goes: what it points to may be another folder's environment.
    [ -L .venv ] || rm -f .venv/ready
    rm -rf .venv
fi
say "Setting up .venv with Python $found and the packages in requirements.lock (1 GB, a minute or a few)."
say "To follow it: tail -f $log"
mkdir .venv
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0 PIP_PROGRESS_BAR=off
step make_venv
step get_pip
step packages
step project
step bytecode
say "$(identity .venv/bin/python) | $made_for" >.venv/ready
say "Set-up done."
