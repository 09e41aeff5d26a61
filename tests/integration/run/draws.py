# mypy: ignore-errors
"""Run by a Python with torch: prints, as JSON, what each operator draws on the CPU under one seed; the twins after it."""

import json

import torch

SIZE = 64
ONES, SQUARE, HALF = torch.ones(SIZE), torch.ones(8, 8), torch.ones(SIZE, dtype=torch.bfloat16)
LARGE = 3 * 10**9


def layer(kind):
    module = kind(4, 4, num_layers=2, dropout=0.5).train()
    for parameter in module.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    return lambda: module(torch.ones(5, 2, 4))[0]


DRAWN = {
    "multinomial": lambda: torch.multinomial(ONES, 1),
    "exponential_": lambda: torch.empty(SIZE).exponential_(),
    "bernoulli": lambda: torch.bernoulli(ONES, 0.5),
    "bernoulli_": lambda: torch.empty(SIZE).bernoulli_(0.5),
    "dropout": lambda: torch.dropout(ONES, 0.5, True),
    "dropout_": lambda: torch.dropout_(ONES.clone(), 0.5, True),
    "feature_dropout": lambda: torch.feature_dropout(SQUARE, 0.5, True),
    "feature_dropout_": lambda: torch.feature_dropout_(SQUARE.clone(), 0.5, True),
    "alpha_dropout": lambda: torch.alpha_dropout(ONES, 0.5, True),
    "alpha_dropout_": lambda: torch.alpha_dropout_(ONES.clone(), 0.5, True),
    "feature_alpha_dropout": lambda: torch.feature_alpha_dropout(SQUARE, 0.5, True),
    "feature_alpha_dropout_": lambda: torch.feature_alpha_dropout_(SQUARE.clone(), 0.5, True),
    "native_dropout": lambda: torch.native_dropout(ONES, 0.5, True)[0],
    "scaled_dot_product_attention": lambda: torch.nn.functional.scaled_dot_product_attention(
        SQUARE[None], SQUARE[None], SQUARE[None], dropout_p=0.5
    ),
    "lstm": layer(torch.nn.LSTM),
    "gru": layer(torch.nn.GRU),
    "rnn_tanh": layer(torch.nn.RNN),
    "rnn_relu": layer(lambda *size, **more: torch.nn.RNN(*size, nonlinearity="relu", **more)),
    "randint": lambda: torch.randint(LARGE, (SIZE,)),
    "randint_like": lambda: torch.randint_like(torch.ones(SIZE, dtype=torch.int64), LARGE),
    "random_": lambda: torch.empty(SIZE, dtype=torch.int64).random_(0, LARGE),
    "rand": lambda: torch.rand(SIZE, dtype=torch.float16),
    "rand_like": lambda: torch.rand_like(HALF),
    "uniform": lambda: torch.ops.aten.uniform(HALF),
    "uniform_": lambda: torch.empty(SIZE, dtype=torch.float16).uniform_(),
    "randn": lambda: torch.randn(SIZE, dtype=torch.float16),
    "randn_like": lambda: torch.randn_like(HALF),
    "normal": lambda: torch.normal(HALF, 1.0),
    "normal_": lambda: torch.empty(SIZE, dtype=torch.float16).normal_(),
}
TWINS = {
    "bernoulli of a tensor": lambda: torch.bernoulli(0.5 * ONES),
    "dropout at rest": lambda: torch.dropout(ONES, 0.5, False),
    "multinomial with replacement": lambda: torch.multinomial(ONES, 4, True),
    "randint of a small range": lambda: torch.randint(1000, (SIZE,)),
    "randint of a huge range": lambda: torch.randint(1 << 40, (SIZE,)),
    "random_ without a range": lambda: torch.empty(SIZE, dtype=torch.int64).random_(),
    "randperm": lambda: torch.randperm(SIZE),
    "rand": lambda: torch.rand(SIZE),
    "randn": lambda: torch.randn(SIZE),
    "poisson": lambda: torch.poisson(3.0 * ONES),
    "geometric_": lambda: torch.empty(SIZE).geometric_(0.3),
    "rrelu": lambda: torch.rrelu(-ONES, 0.1, 0.3, True),
}


def drawn(asked):
    answers = {}
    for name, draw in asked.items():
        torch.manual_seed(7)
        answers[name] = draw().tolist()
    return answers


if __name__ == "__main__":
    with torch.no_grad():
        print(json.dumps([drawn(DRAWN), drawn(TWINS)]))
