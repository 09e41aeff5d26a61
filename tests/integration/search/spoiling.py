"""A release with spoilt operators: an interpreter whose torch is changed as it is imported."""

import shutil
from pathlib import Path

AFTER_TORCH = Path(__file__).with_name("after_torch.py")


def spoilt(python: str, source: Path, folder: Path) -> Path:
    """Return an interpreter that is ``python``, where ``plant`` of ``source`` is called once torch is imported."""
    site = folder / "site"
    site.mkdir(parents=True)
    shutil.copyfile(AFTER_TORCH, site / "sitecustomize.py")
    shutil.copyfile(source, site / "spoilt.py")
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{python}" "$@"\n')
    wrapper.chmod(0o755)
    return wrapper
