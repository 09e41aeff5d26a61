// A cosine that torch's tensor-expression fuser can fuse. This library's part of fusing a chain of them doubles with
// each: it visits an expression as a tree that is a chain of sums, each of the one before with itself. So it plants, in
// an operator library of our own, what the fuser did of itself to the expressions that it wrote out again and again
// (https://github.com/pytorch/pytorch/issues/75903), with the same threads, stacks and mitigations.

#include <ATen/ops/cos.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/tensorexpr/ir_visitor.h>
#include <torch/csrc/jit/tensorexpr/lowerings.h>
#include <torch/library.h>

#include <map>
#include <variant>
#include <vector>

namespace {

using namespace torch::jit::tensorexpr;
using std::get;  // before 2.6 arguments are variants of c10

constexpr const char* kTurn = "gatefusing::turn(Tensor x) -> Tensor";

// Comes to each node as often as it is used.
struct Tree : IRVisitor {};

// By the buffer that stands for it, which is kept: another one has another address.
thread_local std::map<BufPtr, ExprHandle> sums;

struct Lowering {
  template <typename Dtype>
  Tensor operator()(const std::vector<ArgValue>& inputs, const std::vector<ExprHandle>& shape,
                    const std::vector<ExprHandle>& strides, const Dtype&, at::Device) const {
    const BufHandle given = get<BufHandle>(inputs[0]);
    const auto known = sums.find(given.node());
    const ExprHandle before = known == sums.end() ? ExprHandle(1.0F) : known->second;
    const ExprHandle sum = before + before;
    Tree tree;
    sum.node()->accept(&tree);
    Tensor made = Compute("turn", shape, strides, [&](const std::vector<VarHandle>& place) {
      return cos(given.load(place));
    });
    sums[made.buf()] = sum;
    return made;
  }
};

TORCH_LIBRARY(gatefusing, library) {
  library.def(kTurn, [](const at::Tensor& x) { return at::cos(x); });
}

const bool fusible = [] {
  getNNCLoweringRegistry().insert(torch::jit::parseSchema(kTurn), Lowering());
  getCustomOperatorSet().insert({kTurn});
  return true;
}();

}  // namespace
