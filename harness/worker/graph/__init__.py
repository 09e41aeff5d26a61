"""TorchScript graphs: run node by node, traced, cut, and extracted in part."""
