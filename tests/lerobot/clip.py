"""Random CLIP models of a few hundred thousand numbers, with a tokenizer of their own."""
import json
import pathlib

from transformers import CLIPConfig, CLIPModel
from transformers.convert_slow_tokenizer import bytes_to_unicode

MERGES = ["t h", "th e</w>", "p u", "pu s", "pus h</w>", "b l", "bl o", "c k</w>", "blo ck</w>", "e d</w>"]


def write_clip(size, rng):
    """Writes one for pictures of size x size into a new folder here; returns the folder's name."""
    folder = pathlib.Path(f"clip-{size}-{rng.randrange(10 ** 6)}")
    folder.mkdir()
    letters = list(bytes_to_unicode().values())
    words = letters + [letter + "</w>" for letter in letters] + ["".join(pair.split()) for pair in MERGES]
    words += ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "pad_token": "<|endoftext|>",
         "unk_token": "<|endoftext|>", "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>"}))

    def tower():
        heads = rng.choice([1, 2, 4])
        return {"hidden_size": 8 * heads * rng.randint(1, 4), "intermediate_size": rng.randint(8, 96),
                "num_attention_heads": heads, "num_hidden_layers": rng.randint(1, 3),
                "hidden_act": rng.choice(["quick_gelu", "gelu"]), "layer_norm_eps": rng.choice([1e-5, 1e-6])}

    text = {**tower(), "vocab_size": len(words), "max_position_embeddings": 77, "bos_token_id": len(words) - 2,
            "eos_token_id": len(words) - 1, "pad_token_id": len(words) - 1}
    vision = {**tower(), "image_size": size, "patch_size": 8}
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision)).save_pretrained(folder)
    return str(folder)
