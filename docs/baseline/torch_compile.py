#!/usr/bin/env python3
"""The U-Net of `mjpolicy bench --network notebook` through torch.compile, the baseline that C++ cannot be.

Prints rows like `mjpolicy bench --peer torch`, each as soon as it has it: a pass compiled with
max-autotune, alone and captured in a CUDA graph, then the same without the compiler; at batch 1 a
chunk of 100 steps too. Compiling takes minutes. Needs PyTorch 2.11 and a GPU:

    docs/baseline/torch_compile.py --batch 1 16 256 --precision fp16
"""
import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

HORIZON, ACTION, CONDITION, STEP = 16, 2, 1028, 256
DIMS, KERNEL, GROUPS, STEPS = (256, 512, 1024), 5, 8, 100


def half(channels_in, channels_out):
    return nn.Sequential(nn.Conv1d(channels_in, channels_out, KERNEL, padding=KERNEL // 2),
                         nn.GroupNorm(GROUPS, channels_out), nn.Mish())


class Block(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.first, self.second = half(channels_in, channels_out), half(channels_out, channels_out)
        self.film = nn.Sequential(nn.Mish(), nn.Linear(STEP + CONDITION, 2 * channels_out))
        same = channels_in == channels_out
        self.residual = nn.Identity() if same else nn.Conv1d(channels_in, channels_out, 1)

    def forward(self, x, condition):
        scale, bias = self.film(condition).unsqueeze(-1).chunk(2, 1)
        return self.second(self.first(x) * scale + bias) + self.residual(x)


class Unet(nn.Module):
    """Janner's conditional U-Net as the diffusion policy uses it; 79,947,266 parameters."""

    def __init__(self):
        super().__init__()
        self.step = nn.Sequential(nn.Linear(STEP, 4 * STEP), nn.Mish(), nn.Linear(4 * STEP, STEP))
        pairs = list(zip((ACTION, *DIMS), DIMS))
        last = len(pairs) - 1
        self.down = nn.ModuleList(
            nn.ModuleList([Block(a, b), Block(b, b),
                           nn.Conv1d(b, b, 3, 2, 1) if i < last else nn.Identity()])
            for i, (a, b) in enumerate(pairs))
        self.middle = nn.ModuleList([Block(DIMS[-1], DIMS[-1]), Block(DIMS[-1], DIMS[-1])])
        self.up = nn.ModuleList(
            nn.ModuleList([Block(2 * b, a), Block(a, a), nn.ConvTranspose1d(a, a, 4, 2, 1)])
            for a, b in reversed(pairs[1:]))
        self.final = nn.Sequential(half(DIMS[0], DIMS[0]), nn.Conv1d(DIMS[0], ACTION, 1))

    def forward(self, x, step, condition):
        frequencies = torch.exp(torch.arange(STEP // 2, device=x.device) *
                                (-math.log(1e4) / (STEP // 2 - 1)))
        phase = step[:, None] * frequencies
        embedding = self.step(torch.cat([phase.sin(), phase.cos()], 1).to(x.dtype))
        condition = torch.cat([embedding, condition], 1)
        x, skips = x.transpose(1, 2), []
        for first, second, resample in self.down:
            x = second(first(x, condition), condition)
            skips.append(x)
            x = resample(x)
        for block in self.middle:
            x = block(x, condition)
        for first, second, resample in self.up:
            x = resample(second(first(torch.cat([x, skips.pop()], 1), condition), condition))
        return self.final(x).transpose(1, 2)


def report(name, work, seconds):
    for _ in range(3):
        work()
    times, total = [], 0
    while total < 1e3 * seconds or len(times) < 5:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
        total += times[-1]
    times.sort()
    median, p99 = times[len(times) // 2], times[min(len(times) - 1, int(0.99 * len(times)))]
    print(f"baseline  torch, {name:<47} GPU      {len(times):7d} {median:11.4f} {p99:11.4f}", flush=True)


def captured(work):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def chunk(network, x, condition):
    noise = torch.randn_like(x)
    steps = [torch.full((1,), t, device="cuda") for t in range(STEPS)]

    def run():
        y = x
        for step in reversed(steps):
            x0 = ((y - 0.6 * network(y, step, condition)) / 0.8).clamp(-1, 1)
            y = 0.5 * x0 + 0.4 * y + 0.1 * noise
    return run


def rows(network, batch, precision, kind, seconds):
    x = torch.randn(batch, HORIZON, ACTION, device="cuda", dtype=kind)
    condition = torch.randn(batch, CONDITION, device="cuda", dtype=kind)
    step = torch.full((batch,), 50, device="cuda")
    compiled = torch.compile(network, mode="max-autotune-no-cudagraphs", dynamic=False)
    for name, net in (("compile + ", compiled), ("", network)):
        begin = time.monotonic()
        net(x, step, condition)
        torch.cuda.synchronize()
        print(f"first call, {name or 'eager'}: {time.monotonic() - begin:.1f} s", flush=True)
        what = f"{precision}: U-Net pass, batch {batch}"
        report(f"{name}graph {what}", captured(lambda: net(x, step, condition)), seconds)
        if batch == 1:
            report(f"{name}graph {precision}: chunk, {STEPS} steps",
                   captured(chunk(net, x, condition)), seconds)
        report(f"{name}eager {what}", lambda: net(x, step, condition), seconds)


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--precision", choices=["tf32", "fp16", "bf16"], default="fp16")
    parser.add_argument("--seconds", type=float, default=0.5)
    arguments = parser.parse_args()
    kinds = {"tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    kind = kinds[arguments.precision]
    network = Unet().cuda().to(kind).eval()
    parameters = sum(p.numel() for p in network.parameters())
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {parameters:,} parameters",
          flush=True)
    for batch in arguments.batch:
        rows(network, batch, arguments.precision, kind, arguments.seconds)


if __name__ == "__main__":
    main()
