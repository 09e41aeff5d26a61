"""Models of torchvision as a zoo: built with random weights, so nothing is downloaded.

torchvision is imported inside the environments only; whoever reads this file to find its models needs neither.
"""

import torch
import torchvision
from fixtures.declare import Sample, model
from torchvision.ops import nms, roi_align


def images(count, size):
    return torch.rand(count, 3, size, size)


@model("resnet18", tags=("classification",))
def resnet18():
    return Sample(torchvision.models.resnet18(weights=None), example=(images(1, 64),), batch=(images(4, 64),))


@model("vision_transformer", how="trace", tags=("classification",))
def vision_transformer():
    net = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10
    )
    torch.nn.init.normal_(net.heads.head.weight)  # torchvision starts it with zeros: every answer would be the same
    return Sample(net, example=(images(1, 32),), batch=(images(3, 32),))


@model("segmenter", tags=("segmentation",))
def segmenter():
    net = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Sample(net, example=(images(1, 64),), batch=(images(2, 64),))


class Suppressed(torch.nn.Module):
    """The boxes that non-maximum suppression leaves, and what the feature map holds below them."""

    def __init__(self, limit: float):
        super().__init__()
        self.limit = limit

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor, features: torch.Tensor):
        kept = nms(boxes, scores, self.limit)
        pooled = roi_align(features, [boxes[kept]], output_size=[4, 4], spatial_scale=0.25, sampling_ratio=2)
        return kept, pooled


@model("suppressed", tags=("detection",), covers=("torchvision::nms", "torchvision::roi_align"))
def suppressed():
    def request(count):
        corners = torch.rand(count, 2) * 40
        boxes = torch.cat((corners, corners + 8 + torch.rand(count, 2) * 16), dim=1)
        return boxes, torch.rand(count), torch.randn(1, 8, 16, 16)

    return Sample(Suppressed(0.3), example=request(12), more=request(40))


@model("detector", tags=("detection",))
def detector():
    net = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5, box_score_thresh=0.0, box_detections_per_img=10
    )
    return Sample(net, example=([images(1, 96)[0]],), pair=([images(1, 96)[0], images(1, 64)[0]],))
