"""The architectures of each library as modules with example inputs: random weights, nothing is downloaded."""

import inspect
import random
import re
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

import packages

Built = Tuple[torch.nn.Module, Tuple[Any, ...]]
Source = Tuple[Callable[[], List[str]], Callable[[str, str], Iterator[Built]]]

SIDES = (64, 96, 128, 224)
"""Of images: the first that the architecture takes."""


# ---------------------------------------------------------------------------------------------------- torchvision


def torchvision_names() -> List[str]:
    from torchvision import models

    return sorted(models.list_models())


def torchvision_built(name: str, how: str) -> Iterator[Built]:
    from torchvision import models

    builder = models.get_model_builder(name)
    area = builder.__module__.split(".")[2]
    known = inspect.signature(builder).parameters
    options: Dict[str, Any] = {"weights": None}
    if "weights_backbone" in known:
        options["weights_backbone"] = None
    if area == "quantization":
        options["quantize"] = True
    if area == "optical_flow":
        yield builder(**options), (torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128))
    elif area == "detection":
        for side in (96, 320):
            sized = {} if name.startswith("ssd") else {"min_size": side, "max_size": side}
            yield builder(**options, num_classes=5, **sized), ([torch.rand(3, side, side)],)
    elif area == "video":
        for frames, side in ((8, 32), (16, 64), (16, 224)):
            yield builder(**options, num_classes=10), (torch.rand(1, 3, frames, side, side),)
    else:
        for side in SIDES:
            sized = dict(options, num_classes=10)
            if name.startswith("vit_"):
                sized["image_size"] = 28 * 16 if name == "vit_h_14" else 64
            elif name.startswith("maxvit"):
                sized["input_size"] = (224, 224)
            elif name in ("inception_v3", "googlenet", "quantized_inception_v3", "quantized_googlenet"):
                sized["init_weights"] = False
            side = sized.get("image_size", 224 if name.startswith("maxvit") else side)
            yield builder(**sized), (torch.rand(1, 3, side, side),)


# ----------------------------------------------------------------------------------------------------------- timm

SMALL = ("test_", "atto", "femto", "pico", "nano", "xxs", "xx_small", "tiny", "_xs", "small", "_s", "18", "b0", "_t")
TIMM = 120


def timm_names() -> List[str]:
    """Return architectures: of each module of timm the smallest by name, then the next, until there are enough."""
    import timm

    groups: Dict[str, List[str]] = {}
    for name in timm.list_models():
        if not re.search(r"huge|giant|gigantic|enormous|xlarge|_xl|_so\d|large|_l\d|_h\d|_g\d|_7b|1b", name):
            groups.setdefault(timm.models.model_entrypoint(name).__module__, []).append(name)
    ordered = [sorted(names, key=lambda name: (_size(name), name)) for names in groups.values()]
    picked: List[str] = []
    depth = 0
    while len(picked) < TIMM and any(len(names) > depth for names in ordered):
        picked += [names[depth] for names in ordered if len(names) > depth]
        depth += 1
    return picked[:TIMM]


def _size(name: str) -> int:
    return next((rank for rank, word in enumerate(SMALL) if word in name), len(SMALL))


def timm_built(name: str, how: str) -> Iterator[Built]:
    import timm

    for side in (64, 96, 128, 0):
        options: Dict[str, Any] = {"pretrained": False, "num_classes": 10, "scriptable": how == "script"}
        try:
            model = timm.create_model(name, **options, **({"img_size": side} if side else {}))
        except (TypeError, AssertionError, ValueError, RuntimeError):
            model = timm.create_model(name, **options)
        channels, height, width = model.default_cfg.get("input_size", (3, 224, 224))
        yield model, (torch.rand(1, channels, side or height, side or width),)


# --------------------------------------------------------------------------------------------------- transformers

TRANSFORMERS = 110
"""Of these about 60 have a small configuration that runs."""
TINY = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "num_key_value_heads": 4, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "d_ff": 64, "d_kv": 8, "num_layers": 2,
    "num_decoder_layers": 2, "num_heads": 4, "n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64, "n_ctx": 64,
    "embedding_size": 32, "max_position_embeddings": 64, "head_dim": 8, "ffn_dim": 64, "dim": 32, "n_layers": 2,
    "n_heads": 4, "hidden_dim": 64, "emb_dim": 32, "image_size": 32, "patch_size": 8, "num_channels": 3, "rotary_dim": 4,
    "word_embed_proj_dim": 32, "ffn_hidden_size": 64, "num_experts": 2, "num_local_experts": 2, "kv_channels": 8,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "max_source_positions": 64,
    "max_target_positions": 64, "attention_window": 4, "block_size": 4, "q_lora_rank": 8, "kv_lora_rank": 8,
    "type_vocab_size": 2, "num_hidden_groups": 1, "depths": [1, 1], "embed_dim": 16, "window_size": 2,
}  # fmt: skip
"""Only those that the class of the configuration has."""
BATCH, LENGTH = 1, 8


def transformers_names() -> List[str]:
    """Return model types, drawn with a fixed seed, whose base class can be named."""
    from transformers import MODEL_MAPPING
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    del MODEL_MAPPING
    usual = ["bert", "gpt2", "distilbert", "roberta", "t5", "bart", "vit", "electra", "albert", "xlm-roberta", "opt",
             "llama", "mistral", "qwen2", "gemma", "phi", "gpt_neox", "bloom", "deberta-v2", "mpnet", "convnext", "swin",
             "wav2vec2", "whisper", "clip_vision_model"]  # fmt: skip
    known = sorted(name for name in MODEL_MAPPING_NAMES if name in CONFIG_MAPPING_NAMES)
    first = [name for name in usual if name in known]
    rest = [name for name in known if name not in first]
    random.Random(39).shuffle(rest)
    return (first + rest)[:TRANSFORMERS]


def transformers_built(name: str, how: str) -> Iterator[Built]:
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[name]
    plain = kind()
    small = {key: value for key, value in TINY.items() if type(getattr(plain, key, None)) is type(value)}
    for options in (
        small,
        {key: value for key, value in small.items() if key not in ("patch_size", "depths", "image_size")},
    ):
        config = kind(**options)
        config.return_dict = False
        config.use_cache = False
        if hasattr(config, "torchscript"):
            config.torchscript = True
        model = AutoModel.from_config(config)
        if sum(parameter.numel() for parameter in model.parameters()) > 20_000_000:
            raise ValueError("its smallest configuration here has more than 20 million parameters")
        yield model, tuple(_arguments(model, config))


def _arguments(model: torch.nn.Module, config: Any) -> Iterator[Any]:
    ids = torch.randint(3, min(99, getattr(config, "vocab_size", 99)), (BATCH, LENGTH))
    side = getattr(config, "image_size", None) or 32
    side = side if isinstance(side, int) else side[0]
    bins = getattr(config, "num_mel_bins", 80)
    made = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "decoder_input_ids": ids[:, :4].clone(),
        "pixel_values": torch.rand(BATCH, getattr(config, "num_channels", 3), side, side),
        "input_values": torch.rand(BATCH, 4000),
        "input_features": torch.rand(BATCH, bins, 2 * getattr(config, "max_source_positions", 32)),
    }
    names = list(inspect.signature(model.forward).parameters)
    wanted = 3 if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names[:3] else 1
    for name in names[:wanted]:
        if name not in made:
            raise ValueError(f"no example for its argument {name}")
        yield made[name]


# ----------------------------------------------------------------------------------------------------- torchaudio


def _audio() -> Dict[str, Callable[[], Built]]:
    from torchaudio import models, transforms

    wave = torch.rand(1, 8000) - 0.5
    spectrum = torch.rand(1, 201, 20)
    lengths = torch.tensor([20])

    def simple(kind: str, *inputs: Any, **options: Any) -> Callable[[], Built]:
        return lambda: (getattr(transforms, kind)(**options), inputs)

    def model(kind: str, *inputs: Any, **options: Any) -> Callable[[], Built]:
        return lambda: (getattr(models, kind)(**options), inputs)

    tiny = {
        "extractor_mode": "group_norm", "extractor_conv_layer_config": [(16, 10, 5), (16, 3, 2)],
        "extractor_conv_bias": False, "encoder_embed_dim": 32, "encoder_projection_dropout": 0.0,
        "encoder_pos_conv_kernel": 8, "encoder_pos_conv_groups": 4, "encoder_num_layers": 2, "encoder_num_heads": 4,
        "encoder_attention_dropout": 0.0, "encoder_ff_interm_features": 64, "encoder_ff_interm_dropout": 0.0,
        "encoder_dropout": 0.0, "encoder_layer_norm_first": False, "encoder_layer_drop": 0.0, "aux_num_out": 5,
    }  # fmt: skip
    wavlm = dict(tiny, encoder_num_buckets=32, encoder_max_distance=64)
    return {
        "Spectrogram": simple("Spectrogram", wave),
        "InverseSpectrogram": simple("InverseSpectrogram", torch.stft(wave, 400, 200, return_complex=True, window=torch.hann_window(400))),
        "MelSpectrogram": simple("MelSpectrogram", wave, n_mels=32),
        "MelScale": simple("MelScale", spectrum, n_mels=32),
        "MFCC": simple("MFCC", wave, n_mfcc=13, melkwargs={"n_mels": 32}),
        "LFCC": simple("LFCC", wave, n_lfcc=13),
        "AmplitudeToDB": simple("AmplitudeToDB", spectrum),
        "GriffinLim": simple("GriffinLim", spectrum, n_iter=4, rand_init=False),
        "Resample": simple("Resample", wave, orig_freq=16000, new_freq=8000),
        "MuLawEncoding": simple("MuLawEncoding", wave),
        "MuLawDecoding": simple("MuLawDecoding", torch.randint(0, 255, (1, 800))),
        "ComputeDeltas": simple("ComputeDeltas", spectrum),
        "Fade": simple("Fade", wave, fade_in_len=100, fade_out_len=100),
        "FrequencyMasking": simple("FrequencyMasking", spectrum, freq_mask_param=10),
        "TimeMasking": simple("TimeMasking", spectrum, time_mask_param=5),
        "TimeStretch": simple("TimeStretch", torch.complex(spectrum, spectrum), fixed_rate=1.3),
        "SlidingWindowCmn": simple("SlidingWindowCmn", spectrum, cmn_window=20),
        "SpectralCentroid": simple("SpectralCentroid", wave, sample_rate=16000),
        "Vad": simple("Vad", wave, sample_rate=16000),
        "Vol": simple("Vol", wave, gain=2.0),
        "PitchShift": simple("PitchShift", wave, sample_rate=16000, n_steps=12),
        "Loudness": simple("Loudness", wave, sample_rate=16000),
        "PSD": simple("PSD", torch.complex(torch.rand(1, 2, 201, 20), torch.rand(1, 2, 201, 20))),
        "Convolve": simple("Convolve", wave, torch.rand(1, 100)),
        "Deemphasis": simple("Deemphasis", wave),
        "Preemphasis": simple("Preemphasis", wave),
        "wav2vec2": model("wav2vec2_model", torch.rand(1, 1600), **tiny),
        "wavlm": model("wavlm_model", torch.rand(1, 1600), **wavlm),
        "Conformer": model("Conformer", torch.rand(1, 20, 16), lengths, input_dim=16, num_heads=4, ffn_dim=32, num_layers=2, depthwise_conv_kernel_size=3),
        "ConvTasNet": model("ConvTasNet", torch.rand(1, 1, 800), num_sources=2, enc_num_feats=16, msk_num_feats=8, msk_num_hidden_feats=16, msk_num_layers=2, msk_num_stacks=1),
        "DeepSpeech": model("DeepSpeech", torch.rand(1, 1, 20, 16), n_feature=16, n_hidden=32, n_class=10),
        "Emformer": model("Emformer", torch.rand(1, 21, 16), lengths, input_dim=16, num_heads=4, ffn_dim=32, num_layers=2, segment_length=4, right_context_length=1),
        "Wav2Letter": model("Wav2Letter", torch.rand(1, 1, 4000), num_classes=10),
        "WaveRNN": model("WaveRNN", torch.rand(1, 1, (5 - 4) * 40), torch.rand(1, 1, 16, 5), upsample_scales=[2, 4, 5], n_classes=8, hop_length=40, n_res_block=1, n_rnn=16, n_fc=16, kernel_size=5, n_freq=16, n_hidden=16, n_output=16),
        "HDemucs": model("HDemucs", torch.rand(1, 2, 8192), sources=["a", "b"], nfft=1024, channels=8, depth=4),
        "Tacotron2": model("Tacotron2", torch.randint(0, 9, (1, 6)), torch.tensor([6]), torch.rand(1, 16, 8), torch.tensor([8]), n_mels=16, n_symbol=10, symbol_embedding_dim=16, encoder_embedding_dim=16, attention_rnn_dim=16, attention_hidden_dim=16, decoder_rnn_dim=16, prenet_dim=16, postnet_embedding_dim=16),
    }  # fmt: skip


def torchaudio_names() -> List[str]:
    return list(_audio())


def torchaudio_built(name: str, how: str) -> Iterator[Built]:
    yield _audio()[name]()


SOURCES: Dict[str, Source] = {
    "torchvision": (torchvision_names, torchvision_built),
    "timm": (timm_names, timm_built),
    "transformers": (transformers_names, transformers_built),
    "torchaudio": (torchaudio_names, torchaudio_built),
    "packages": (packages.names, packages.built),
}
