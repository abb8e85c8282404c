# Sets $python to an interpreter that can run this product, or ends with one sentence. Sourced by the commands beside
# it, which set $command. A Python that can make virtual environments is taken before one that cannot.

fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
python=
found=
for candidate in python3 python3.13 python3.12 python3.11 python; do
    path=$(command -v "$candidate" 2>/dev/null) || continue
    found=${found:-"$path is $("$path" -V 2>&1)"}
    "$path" -I -c "$fits" 2>/dev/null || continue
    python=${python:-$path}
    if "$path" -I -c 'import venv, ensurepip' 2>/dev/null; then
        python=$path
        break
    fi
done
if [ -z "$python" ]; then
    echo "bin/$command: Python 3.11, 3.12 or 3.13 is needed and none is on the PATH" \
        "(${found:-no Python was found}); install it (Debian, Ubuntu: apt-get install python3 python3-venv) and run this again." >&2
    exit 1
fi
