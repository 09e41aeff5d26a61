"""A handler of TorchServe: a request's JSON is a list of tensors as nested lists, its answer a nested list."""

import torch
from ts.torch_handler.base_handler import BaseHandler


class Handler(BaseHandler):
    def handle(self, data, context):
        return [self.answer(row.get("data", row.get("body"))) for row in data]

    def answer(self, inputs):
        with torch.inference_mode():
            return self.model(*(torch.tensor(item, device=self.device) for item in inputs)).tolist()
