#!/bin/sh
# archive.sh HANDLER FOLDER MODEL.pt ...: packs each model with the handler, as TorchServe wants it.
set -eu
handler=$1 folder=$2
shift 2
mkdir -p "$folder"
for model; do
    name=$(basename "$model" .pt)
    torch-model-archiver --model-name "$name" --version 1.0 --serialized-file "$model" --handler "$handler" --export-path "$folder" --force
done
