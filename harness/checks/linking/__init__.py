"""Whether binaries that were built against one LibTorch link with another: read from their symbol tables."""
