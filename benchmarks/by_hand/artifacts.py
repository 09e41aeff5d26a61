"""Run in the old release: write 24 artifacts of served size and their requests, as a team has them.

    PYTHONPATH=REPOSITORY PYTHON artifacts.py FOLDER

Those of the zoo, and the same architectures in other widths, batch sizes and lengths.
"""

import os
import sys

import torch

from fixtures.declare import Sample
from fixtures.zoo.image_to_image import UNet
from fixtures.zoo.recommendation import DLRM, MMoE, jagged
from fixtures.zoo.sequence import SessionGRU, SessionLSTM
from fixtures.zoo.served import recommendation, sequence, speech, text, vision
from fixtures.zoo.served.speech import ConformerEncoder
from fixtures.zoo.served.vision import ResNet50, images
from fixtures.zoo.text import Bert, BertFlash, padded_ids
from fixtures.zoo.vision import ConvNeXt, settle


def dlrm_of_26_tables():
    rows = (20_000,) * 26  # as many as Criteo's data set has

    def request(batch):
        ids, offsets = zip(*[jagged(batch, count) for count in rows])
        return torch.randn(batch, 13), list(ids), list(offsets)

    return Sample(DLRM(rows, 13, 32, width=512), example=request(512), batch_1=request(1))


def mixture_of_a_large_batch():
    return Sample(
        MMoE(512, 8, 512, ("click", "install")), example=(torch.randn(256, 512),), batch_1=(torch.randn(1, 512),)
    )


def wide_lstm():
    def request(batch):
        return torch.randint(20_000, (batch, 32)), torch.randint(1, 33, (batch,))

    return Sample(SessionLSTM(20_000, 512), example=request(4), batch_1=request(1))


def wide_gru():
    def request(batch):
        return torch.randint(5000, (batch, 20)), torch.randn(2, batch, 512)

    return Sample(SessionGRU(5000, 512), example=request(4), batch_1=request(1))


def long_conformer():
    def request(batch, frames):
        return torch.randn(batch, frames, 80), torch.randint(frames // 2, frames + 1, (batch,))

    return Sample(ConformerEncoder(80, 256, 4, 3, 64), example=request(1, 320), batch_2=request(2, 40))


def deeper_bert():
    return Sample(
        Bert(4000, 128, 768, 12, 4, 3072), example=(padded_ids(1, 32, 4000),), batch_2=(padded_ids(2, 16, 4000),)
    )


def bert_sdpa_of_a_batch():
    return Sample(
        BertFlash(4000, 64, 384, 12, 4, 5), example=(padded_ids(8, 64, 4000),), batch_1=(padded_ids(1, 16, 4000),)
    )


def wide_bert_sdpa():
    return Sample(
        BertFlash(4000, 128, 768, 12, 3, 5), example=(padded_ids(1, 128, 4000),), batch_2=(padded_ids(2, 16, 4000),)
    )


def resnet50_of_full_images():
    return Sample(settle(ResNet50((1, 1, 2, 1), 1000)), example=images(1, 224), batch_2=images(2, 64))


def convnext_of_a_batch():
    return Sample(ConvNeXt(192, 3, 1000), example=images(4, 96), batch_1=images(1, 64))


def large_unet():
    return Sample(UNet((24, 48, 96, 192), 2, torch.nn.InstanceNorm2d), example=images(1, 128), batch_2=images(2, 64))


SCRIPTED = {
    "bert": text.served_bert,
    "bert_deeper": deeper_bert,
    "conformer": speech.served_conformer,
    "conformer_long": long_conformer,
    "decoder": text.served_decoder,
    "detector": vision.served_detector,
    "dlrm": recommendation.served_dlrm,
    "dlrm_26_tables": dlrm_of_26_tables,
    "gru": sequence.served_gru,
    "gru_wide": wide_gru,
    "lstm": sequence.served_lstm,
    "lstm_wide": wide_lstm,
    "mixture": recommendation.served_mixture,
    "mixture_large_batch": mixture_of_a_large_batch,
    "two_tower": recommendation.served_two_tower,
    "unet": vision.served_unet,
    "unet_large": large_unet,
}
TRACED = {
    "bert_sdpa": text.served_bert_sdpa,
    "bert_sdpa_batch": bert_sdpa_of_a_batch,
    "bert_sdpa_wide": wide_bert_sdpa,
    "convnext": vision.served_convnext,
    "convnext_batch": convnext_of_a_batch,
    "resnet50": vision.served_resnet50,
    "resnet50_full": resnet50_of_full_images,
}


def main(folder):
    for name, factory in {**SCRIPTED, **TRACED}.items():
        torch.manual_seed(0)
        sample = factory()
        module = sample.module.eval()
        if name in SCRIPTED:
            script = torch.jit.script(module)
        else:
            script = torch.jit.trace(module, next(iter(sample.inputs.values())).args)
        script.save(os.path.join(folder, name + ".pt"))
        requests = {key: {"method": call.method, "arguments": call.args} for key, call in sample.inputs.items()}
        torch.save(requests, os.path.join(folder, name + ".inputs.pt"))


main(*sys.argv[1:])
