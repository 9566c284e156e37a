"""Text of the bundled DeepSeek-V4 model through Hugging Face transformers, on a GPU or a simulated one.

    python examples/python/transformers_v4.py -p 'What is NUMA?' --max-tokens 40
    python examples/python/transformers_v4.py --attention eager       # the same without our kernels

Needs torch and transformers 5.17 or 5.23.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
import transformers

import tilewright.torch
from tilewright.integrations.transformers import load_v4

MODEL = Path(__file__).resolve().parents[1] / "models" / "tiny-dsv4"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-p", "--prompt", default=(MODEL / "prompt.txt").read_text())
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--model", type=Path, default=MODEL, help="a folder in the same formats")
    parser.add_argument("--attention", default="tilewright", help="tilewright or eager")
    parser.add_argument(
        "--experts", default="eager", help="eager, or tilewright-bf16, -fp8, -mxfp4, -nvfp4"
    )
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        tilewright.torch.set_device("sim:h200")
    transformers.utils.logging.disable_progress_bar()
    model = load_v4(
        args.model, attn_implementation=args.attention, experts_implementation=args.experts
    ).to(device)
    prompt = torch.tensor([list(args.prompt.encode())], device=device)  # a token is a byte
    text = model.generate(prompt, max_new_tokens=args.max_tokens, do_sample=False)
    sys.stdout.buffer.write(bytes(text[0].tolist()) + b"\n")


if __name__ == "__main__":
    main()
