"""Rules for resampling of images: each dimension by a matrix of weights."""

from gate_worker.rewrite.rules import written

SIZES = """
def sizes_of(input: Tensor, output_size: Optional[List[int]], factors: Optional[List[float]]) -> List[int]:
  if output_size is not None:
    return output_size
  assert factors is not None
  sizes: List[int] = []
  for i in range(len(factors)):
    sizes.append(int(math.floor(float(input.size(i + 2)) * factors[i])))
  return sizes

def step_of(size: int, wanted: int, align_corners: bool, factors: Optional[List[float]], dim: int) -> float:
  if align_corners:
    if wanted > 1:
      return float(size - 1) / float(wanted - 1)
    return 0.0
  if factors is not None:
    return 1.0 / factors[dim]
  return float(size) / float(wanted)
"""
LINEAR = """
def kernel(away: Tensor) -> Tensor:
  return (1.0 - away.abs()).clamp(min=0.0)
"""
CUBIC = """
def kernel(away: Tensor) -> Tensor:
  away = away.abs()
  near = ((away * 1.25 - 2.25) * away) * away + 1.0
  far = ((away * -0.75 + 3.75) * away - 6.0) * away + 3.0
  return torch.where(away < 1.0, near, torch.where(away < 2.0, far, torch.zeros_like(away)))
"""
# What lies beyond the border is the pixel at the border.
CLAMPED = """
def weights(size: int, wanted: int, align_corners: bool, step: float, like: Tensor) -> Tensor:
  at = torch.arange(wanted, dtype=torch.float64, device=like.device)
  at = at * step if align_corners else (at + 0.5) * step - 0.5
  {first}
  answer = torch.zeros([wanted, size], dtype=torch.float64, device=like.device)
  low = at.floor()
  for tap in range({taps}):
    index = low + float(tap + 1 - {taps} // 2)
    part = kernel(at - index)
    answer.scatter_add_(1, index.clamp(0, size - 1).to(torch.int64).unsqueeze(1), part.unsqueeze(1))
  return answer
"""
# As torch 2.1 and 2.2 do with bytes: what lies beyond the border is left out, and the rest scaled up to one.
CUT_OFF = """
def weights(size: int, wanted: int, align_corners: bool, step: float, like: Tensor) -> Tensor:
  delta = 0.5 if align_corners else 0.0
  centre = ((torch.arange(wanted, dtype=torch.float64, device=like.device) + 0.5 - delta) * step).unsqueeze(1)
  low = (centre - {taps} // 2 + 0.5 + delta).trunc().clamp(min=0.0)
  high = (centre + {taps} // 2 + 0.5 + delta).trunc().clamp(max=float(size))
  index = torch.arange(size, dtype=torch.float64, device=like.device).unsqueeze(0)
  answer = kernel(index - centre + 0.5 - delta)
  inside = torch.logical_and(index >= low, index < high)
  answer = torch.where(inside, answer, torch.zeros_like(answer))
  return answer / answer.sum(1, keepdim=True)
"""
# Bytes are resampled with weights of 16 bits and rounded after each dimension.
RESAMPLED = """
def bytes_by(image: Tensor, by: Tensor) -> Tensor:
  bits = 0
  while bits < 22 and int(0.5 + float(by.max()) * float(2 ** (bits + 1))) < 32768:
    bits += 1
  one = float(2 ** bits)
  rounded = (by * one + torch.where(by < 0.0, -0.5, 0.5)).trunc()
  sums = torch.matmul(image.to(torch.float64), rounded.t()) + one * 0.5
  return (sums / one).floor().clamp(0, 255)

def f(input: Tensor, output_size: Optional[List[int]], align_corners: bool,
      scale_factors: Optional[List[float]] = None) -> Tensor:
  sizes = sizes_of(input, output_size, scale_factors)
  height, width = input.size(2), input.size(3)
  high = weights(height, sizes[0], align_corners, step_of(height, sizes[0], align_corners, scale_factors, 0), input)
  wide = weights(width, sizes[1], align_corners, step_of(width, sizes[1], align_corners, scale_factors, 1), input)
  if input.dtype == torch.uint8:
    across = bytes_by(input, wide).transpose(2, 3)
    return bytes_by(across, high).transpose(2, 3).to(torch.uint8)
  return torch.matmul(torch.matmul(high.to(input.dtype), input), wide.to(input.dtype).t())
"""
KERNELS = {
    "bilinear": (LINEAR, 2, "at = at.clamp(min=0.0)"),
    "bicubic": (CUBIC, 4, "at = at"),
}
for mode, (kernel, taps, first) in KERNELS.items():
    for border, name, needs in (
        (CLAMPED, "resize-%s" % mode, ""),
        (CUT_OFF, "resize-%s-cut-off" % mode, "images of bytes, whose border is to be weighted as in torch 2.1"),
    ):
        written(
            name,
            "aten::upsample_%s2d.vec" % mode,
            what="upsample_%s2d as products with matrices of weights" % mode,
            needs=needs,
            source=SIZES + kernel + border.format(first=first, taps=taps) + RESAMPLED,
        )
written(
    "resize-nearest",
    "aten::upsample_nearest2d.vec",
    what="upsample_nearest2d as selection of rows and columns",
    source=SIZES
    + """
def rows(size: int, wanted: int, step: float, like: Tensor) -> Tensor:
  at = torch.arange(wanted, dtype=torch.float32, device=like.device) * step
  return at.floor().clamp(max=float(size - 1)).to(torch.int64)

def f(input: Tensor, output_size: Optional[List[int]], scale_factors: Optional[List[float]] = None) -> Tensor:
  sizes = sizes_of(input, output_size, scale_factors)
  high = rows(input.size(2), sizes[0], step_of(input.size(2), sizes[0], False, scale_factors, 0), input)
  wide = rows(input.size(3), sizes[1], step_of(input.size(3), sizes[1], False, scale_factors, 1), input)
  return input.index_select(2, high).index_select(3, wide)
""",
)
written(
    "average-pool",
    "aten::adaptive_avg_pool2d",
    what="adaptive_avg_pool2d as sums over windows, divided; integers are cut off as torch 2.1 does",
    source="""
def windows(size: int, wanted: int, like: Tensor) -> Tensor:
  at = torch.arange(wanted, device=like.device)
  low = torch.div(at * size, wanted, rounding_mode="floor").unsqueeze(1)
  high = torch.div((at + 1) * size + wanted - 1, wanted, rounding_mode="floor").unsqueeze(1)
  index = torch.arange(size, device=like.device).unsqueeze(0)
  return torch.logical_and(index >= low, index < high).to(like.dtype)

def f(self: Tensor, output_size: List[int]) -> Tensor:
  wide = self
  if not self.is_floating_point():
    wide = self.to(torch.int64)
  high = windows(self.size(-2), output_size[0], wide)
  across = windows(self.size(-1), output_size[1], wide)
  sums = torch.matmul(torch.matmul(high, wide), across.t())
  counts = high.sum(1).unsqueeze(1) * across.sum(1).unsqueeze(0)
  if self.is_floating_point():
    return sums / counts
  return torch.div(sums, counts, rounding_mode="trunc").to(self.dtype)
""",
)
