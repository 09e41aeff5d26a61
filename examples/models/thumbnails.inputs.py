import torch


def inputs():
    return (torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8),)
