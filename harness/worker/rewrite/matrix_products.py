"""Rules for products of matrices."""

from gate_worker.graph.node_replacement import Refused, write_out
from gate_worker.rewrite.rules import rule, written

SCALED_SUM = """
def f(self: Tensor, {one}: Tensor, {other}: Tensor, beta: number = 1, alpha: number = 1) -> Tensor:
  product = torch.{product}({one}, {other})
  if alpha != 1:
    product = product * alpha
  if beta == 0:
    return product
  if beta != 1:
    self = self * beta
  return self + product
"""
written(
    "addmm",
    "aten::addmm",
    what="addmm as mm and add",
    source=SCALED_SUM.format(one="mat1", other="mat2", product="mm"),
)
written(
    "baddbmm",
    "aten::baddbmm",
    what="baddbmm as bmm and add",
    source=SCALED_SUM.format(one="batch1", other="batch2", product="bmm"),
)
written(
    "linear",
    "aten::linear",
    what="linear as t, matmul and add",
    source="""
def f(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
  product = torch.matmul(input, weight.t())
  if bias is not None:
    product = product + bias
  return product
""",
)


def without_dropout(site):
    if site.constant("dropout_p") != 0.0:
        raise Refused("it drops out at random")


written(
    "attention",
    "aten::scaled_dot_product_attention",
    what="scaled_dot_product_attention as softmax of scaled products",
    needs="a row that is masked as a whole is to give NaN, as before torch 2.5",
    unless=without_dropout,
    source="""
def f(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
      is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False) -> Tensor:
  if enable_gqa:
    key = key.repeat_interleave(query.size(-3) // key.size(-3), dim=-3)
    value = value.repeat_interleave(query.size(-3) // value.size(-3), dim=-3)
  factor = 1.0 / math.sqrt(float(query.size(-1)))
  if scale is not None:
    factor = scale
  scores = torch.matmul(query, key.transpose(-2, -1)) * factor
  if is_causal:
    seen = torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool, device=query.device).tril()
    scores = scores.masked_fill(torch.logical_not(seen), -float("inf"))
  if attn_mask is not None:
    if attn_mask.dtype == torch.bool:
      scores = scores.masked_fill(torch.logical_not(attn_mask), -float("inf"))
    else:
      scores = scores + attn_mask
  return torch.matmul(torch.softmax(scores, -1), value)
""",
)


@rule("einsum", "aten::einsum", what="einsum as permute and bmm")
def einsum(site):
    write_out(site, PRODUCT.format(**orders(site.constant("equation"))))


# Permutations by index: those that both have and the answer keeps, those of one, those that are summed over.
PRODUCT = """
def f(equation: str, tensors: List[Tensor], path: Optional[List[int]] = None) -> Tensor:
  one = tensors[0].permute({one}){one_sums}
  other = tensors[1].permute({other}){other_sums}
  together: List[int] = []
  together.extend(one.size()[:{both}])
  rows: List[int] = []
  rows.extend(one.size()[{both}:{both} + {rows}])
  columns: List[int] = []
  columns.extend(other.size()[{both} + {inner}:])
  batch = 1
  for size in together:
    batch *= size
  height = 1
  for size in rows:
    height *= size
  width = 1
  for size in columns:
    width *= size
  depth = 1
  for size in one.size()[{both} + {rows}:]:
    depth *= size
  product = torch.bmm(one.reshape([batch, height, depth]), other.reshape([batch, depth, width]))
  return product.reshape(together + rows + columns).permute({answer})
"""


def orders(equation):
    """Return the permutations of both operands and of the answer, and how many indices of each kind there are."""
    sides = equation.replace(" ", "").split("->")
    operands = sides[0].split(",")
    if "." in equation or len(operands) != 2 or any(len(set(labels)) != len(labels) for labels in operands):
        raise Refused("%r is not a product of two operands with each index once" % equation)
    first, other = operands
    answer = sides[1] if len(sides) == 2 else implied(first + other)
    both = [label for label in first if label in other and label in answer]
    inner = [label for label in first if label in other and label not in answer]
    rows = [label for label in first if label not in other and label in answer]
    columns = [label for label in other if label not in first and label in answer]
    sums = [
        [label for label in mine if label not in theirs + answer] for mine, theirs in ((first, other), (other, first))
    ]
    order = both + rows + columns
    return {
        "one": [first.index(label) for label in both + rows + inner + sums[0]],
        "other": [other.index(label) for label in both + inner + columns + sums[1]],
        "one_sums": summed(sums[0]),
        "other_sums": summed(sums[1]),
        "both": len(both),
        "rows": len(rows),
        "inner": len(inner),
        "answer": [order.index(label) for label in answer],
    }


def implied(labels):
    """Return the indices of the answer where the equation does not name them: those that stand once, in order."""
    return "".join(sorted(label for label in set(labels) if labels.count(label) == 1))


def summed(labels):
    """Return how the last dimensions of an operand are summed over, one for each label."""
    return ".sum(%s)" % [-1 - index for index in range(len(labels))] if labels else ""
