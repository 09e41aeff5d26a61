import torch


def inputs():
    return (torch.randn(3, 8),)
