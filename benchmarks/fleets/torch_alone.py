"""What torch alone takes for a store: load each artifact and call it as often as the gate does; seconds, as JSON.

Run with a release: FOLDER FIRST CALLS; artifacts before FIRST are left out, since they are planted.
"""

import glob
import json
import os
import sys
import time

import torch


def main(folder: str, first: int, calls: int) -> None:
    """Print how many artifacts were called, and the seconds that took."""
    torch.set_num_threads(1)
    paths = sorted(glob.glob(os.path.join(folder, "*", "*.pt")))
    asked = torch.randn(8, 6)
    done, begin = 0, time.monotonic()
    for path in paths:
        if int(path[-7:-3]) >= first:
            model = torch.jit.load(path)
            for _ in range(calls):
                model(asked)
            done += 1
    print(json.dumps({"artifacts": done, "seconds": time.monotonic() - begin}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
