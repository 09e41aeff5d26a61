"""In an environment under test: write one file of each kind that torch itself writes. ``ENV_PYTHON formats.py FOLDER``."""

import os
import sys

import torch
from torch.package import PackageExporter

os.chdir(sys.argv[1])
module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
scripted = torch.jit.script(module)
torch.jit.save(scripted, "torchscript.pt")
scripted._save_for_lite_interpreter("mobile.pt")
scripted._save_for_lite_interpreter("flatbuffer.pt", _use_flatbuffer=True)
torch.save(module.state_dict(), "state_dict.pt")
torch.save(module, "pickled_module.pt")
torch.save({"epoch": 3, "model": module.state_dict(), "losses": [1.0]}, "torch_save.pt")
torch.save(module.state_dict(), "legacy_save.pt", _use_new_zipfile_serialization=False)
with PackageExporter("torch_package.pt") as exporter:
    exporter.extern("**")
    exporter.save_pickle("models", "net.pkl", module)
os._exit(0)
