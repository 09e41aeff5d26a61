"""Rules for operators and arguments that some release does not have, or has made something else of."""

from gate_worker.graph.node_replacement import Refused, compiled, put_in_place
from gate_worker.rewrite.rules import rule, written

written(
    "cholesky",
    "aten::cholesky",
    what="cholesky as linalg_cholesky",
    source="""
def f(self: Tensor, upper: bool = False) -> Tensor:
  factor = torch.linalg.cholesky(self)
  if upper:
    factor = torch.conj(factor.transpose(-2, -1)).resolve_conj()
  return factor
""",
)
written(
    "qr",
    "aten::qr",
    what="qr as linalg_qr",
    source="""
def f(self: Tensor, some: bool = True) -> Tuple[Tensor, Tensor]:
  if some:
    return torch.linalg.qr(self, "reduced")
  return torch.linalg.qr(self, "complete")
""",
)
written(
    "symeig",
    "aten::symeig",
    what="symeig as linalg_eigh",
    source="""
def f(self: Tensor, eigenvectors: bool = False, upper: bool = True) -> Tuple[Tensor, Tensor]:
  half = "L"
  if upper:
    half = "U"
  values, vectors = torch.linalg.eigh(self, half)
  if not eigenvectors:
    vectors = torch.empty([0], dtype=self.dtype, device=self.device)
  return values, vectors
""",
)
written(
    "pad-sequence",
    "aten::pad_sequence",
    what="pad_sequence as copying each one into a block of the padding",
    source="""
def f(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0,
      padding_side: str = "right") -> Tensor:
  longest = 0
  for sequence in sequences:
    longest = max(longest, sequence.size(0))
  padded: List[Tensor] = []
  for sequence in sequences:
    sizes = sequence.size()
    missing = sequence.new_full([longest - sizes[0]] + sizes[1:], padding_value)
    if padding_side == "left":
      padded.append(torch.cat([missing, sequence], 0))
    else:
      padded.append(torch.cat([sequence, missing], 0))
  if batch_first:
    return torch.stack(padded, 0)
  return torch.stack(padded, 1)
""",
)
written(
    "unique",
    "aten::_unique2",
    what="unique of integers in a narrow range by counting, not by sorting",
    source="""
def f(self: Tensor, sorted: bool = True, return_inverse: bool = False,
      return_counts: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
  if not return_inverse and self.numel() > 0 and (self.dtype == torch.int64 or self.dtype == torch.int32):
    low = int(self.min())
    if int(self.max()) - low < 65536:
      counts = torch.bincount((self - low).reshape([-1]))
      found = counts.nonzero().reshape([-1])
      none = torch.empty([0], dtype=torch.int64, device=self.device)
      if return_counts:
        return (found + low).to(self.dtype), none, counts[found]
      return (found + low).to(self.dtype), none, none
  return torch._unique2(self, sorted, return_inverse, return_counts)
""",
)
BOUNDS = {
    "aten::arange": ("", "int(end)"),
    "aten::arange.start": ("start: number, ", "int(start), int(end)"),
    "aten::arange.start_step": ("start: number, ", "int(start), int(end), int(step)"),
}
# torch.int64 and the narrower integers, as a graph has dtypes
INTEGERS = (0, 1, 2, 3, 4)


@rule(
    "arange",
    *BOUNDS,
    what="arange of integers with its bounds cut off to integers, as before torch 2.15",
)
def arange(site):
    if site.constant("dtype") not in INTEGERS:
        raise Refused("it does not make integers")
    start, bounds = BOUNDS[site.operator]
    step = "step: number, " if "step" in bounds else ""
    function = compiled(RANGE.format(start=start, step=step, bounds=bounds))
    put_in_place(site, function, list(site.node.inputs()))


RANGE = """
def f({start}end: number, {step}dtype: Optional[int], layout: Optional[int], device: Optional[Device],
      pin_memory: Optional[bool]) -> Tensor:
  return torch.arange({bounds}, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
"""
PLACES = ("ort", "maia", "vulkan", "ipu", "mtia", "xpu", "hpu")


@rule("device-test", *("prim::is_%s" % place for place in PLACES), what="a test for a device by the device's name")
def device_test(site):
    place = site.node.kind().partition("prim::is_")[2]
    function = compiled('def f(x: Tensor) -> bool:\n  return x.device.type == "%s"\n' % place)
    put_in_place(site, function, list(site.node.inputs()))
