#!/usr/bin/env bash
# torch-model-archiver writes the same model with other paths as .tar.gz than as .mar.
#
# Seen with torch-model-archiver==0.12.0 from PyPI, Linux x86-64, CPython 3.11, one call with --archive-format default
# and one with tgz:
#     ranker.mar (zip)      MAR-INF/MANIFEST.json, model.pt
#     ranker.tar.gz         ranker/MAR-INF/MANIFEST.json, ranker/model.pt
# `serializedFile` is "model.pt" in both manifests: in the tar it is relative to a folder called as the model. A reader
# of archives that looks for MAR-INF/MANIFEST.json at the root finds none.
# Needs: uv, Python 3.11, a package index. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
uv venv -q --python 3.11 "$work/env"
uv pip install -q --python "$work/env/bin/python" torch-model-archiver==0.12.0
echo weights > "$work/model.pt"
for format in default tgz; do
  (cd "$work" && PATH="$work/env/bin:$PATH" torch-model-archiver --model-name ranker --version 1.0 \
    --serialized-file model.pt --handler base_handler --archive-format "$format" --export-path "$work" 2>/dev/null)
done
said=$("$work/env/bin/python" - "$work" <<'PY'
import json, sys, tarfile, zipfile
mar, tgz = zipfile.ZipFile(sys.argv[1] + "/ranker.mar"), tarfile.open(sys.argv[1] + "/ranker.tar.gz")
files = sorted(name for name in mar.namelist() if not name.endswith("/"))
print("mar", files, json.loads(mar.read("MAR-INF/MANIFEST.json"))["model"]["serializedFile"])
files = sorted(member.name for member in tgz.getmembers() if member.isfile())
print("tgz", files, json.load(tgz.extractfile("ranker/MAR-INF/MANIFEST.json"))["model"]["serializedFile"])
PY
)
echo "$said"
[ "$said" = "mar ['MAR-INF/MANIFEST.json', 'model.pt'] model.pt
tgz ['ranker/MAR-INF/MANIFEST.json', 'ranker/model.pt'] model.pt" ]
