"""Texts of a DeepSeek-V4 model: several prompts together, then one as it is written.

    build/python/bin/python examples/python/generate.py [FOLDER [DEVICE]]

The default is the bundled model in float64, which needs no device.
"""

import pathlib
import sys

from tilewright import LLM, SamplingParams

BUNDLED = pathlib.Path(__file__).parents[1] / "models/tiny-dsv4"


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else BUNDLED
    device = sys.argv[2] if len(sys.argv) > 2 else "reference"
    llm = LLM(folder, device=device, max_tokens=256, sequences=8)
    print(llm.description)
    for done in llm.generate(["The kernel ", "int main", "# "], SamplingParams(max_tokens=12)):
        print(f"{done.prompt!r} -> {done.text!r} ({done.finish_reason})")
    params = SamplingParams(max_tokens=24, temperature=0.7, top_p=0.9, seed=1)
    for piece in llm.stream("A warp ", params):
        print(piece.text, end="", flush=True)
    print(f"\n{llm.counts}")


if __name__ == "__main__":
    main()
