#!/bin/sh
# Makes .venv with everything the product needs, from hashed requirements. `dev` adds what tests and checks need.
# Says what it does; does nothing when it is done already. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-run}
venv=.venv

fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if fits "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed (PYTHON=/path/to/python3 names one)." >&2
    exit 1
}

fingerprint() {
    { "$venv/bin/python" -V; cat "requirements/$1.txt" pyproject.toml; } | cksum
}

# A moved environment is no environment: its scripts name the place it was made in.
made_here() { [ "$(cat "$venv/made-in" 2>/dev/null)" = "$(pwd)" ] && fits "$venv/bin/python"; }

installed() {
    made_here && [ -x "$venv/bin/lintello" ] && [ -f "$venv/installed-$1" ] \
        && [ "$(fingerprint "$1")" = "$(cat "$venv/installed-$1")" ]
}

if installed dev || { [ "$kind" = run ] && installed run; }; then
    exit 0
fi

if ! made_here || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    echo "[1/3] Python environment in .venv ($("$python" -V))"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "The venv module is incomplete; on Debian and Ubuntu: apt install python3-venv" >&2
        exit 1
    fi
    pwd >"$venv/made-in"
else
    echo "[1/3] Python environment in .venv ($("$venv/bin/python" -V))"
fi
rm -f "$venv"/installed-*
echo "[2/3] Libraries ($(grep -c '==' "requirements/$kind.txt") packages, checked by hash)"
bar=off
[ -t 1 ] && bar=on
"$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar "$bar" --require-hashes \
    --only-binary :all: -r "requirements/$kind.txt" >"$venv/install.log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || true; exit 130' INT TERM
shown=0
while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    now=$(grep -c '^Collecting' "$venv/install.log" || true)
    if [ "$now" != "$shown" ]; then
        shown=$now
        [ "$bar" = on ] && printf '\r      %s collected' "$now"
    fi
done
[ "$bar" = on ] && printf '\n'
if ! wait "$pid"; then
    tail -n 15 "$venv/install.log" >&2
    exit 1
fi
trap - INT TERM
echo "[3/3] LintellO itself"
"$venv/bin/python" -m pip install --disable-pip-version-check --no-input -q --no-deps --no-build-isolation -e .
fingerprint "$kind" >"$venv/installed-$kind"
