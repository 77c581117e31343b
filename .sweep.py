import json, sys, time, itertools, logging, warnings, os
from pathlib import Path
import torch
warnings.simplefilter("ignore")
logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
from lightning.fabric import Fabric
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
fabric = Fabric(accelerator="cuda", devices=1, precision="32-true"); fabric.launch()
base = ["run.evaluate_every=1000", "data.mode=resident", "run.log_every=200"]
cases = json.loads(sys.argv[1])
import io
for name, (enc, over) in cases.items():
    start = time.time()
    try:
        config = configuration("sorting", enc, "quick", overrides=[*base, *over])
        folder = Path("/tmp/sweep") / name; folder.mkdir(parents=True, exist_ok=True)
        t = Trainer(config, folder, fabric)
        t.run()
        fig = t.evaluate(t.evaluation_data("test"))
        lines = [json.loads(l) for l in (folder/"log.jsonl").read_text().splitlines()]
        losses = [round(l["loss"],3) for l in lines if l["kind"]=="train"]
        valid = [round(l["accuracy"],3) for l in lines if l["kind"]=="valid"]
        print("RES", name, f"{time.time()-start:.0f}s", "valid", valid[-1], {n: round(fig[f"accuracy/{n}"],3) for n in range(10,17) if f"accuracy/{n}" in fig}, losses[::max(1,len(losses)//10)], flush=True)
    except Exception as e:
        import traceback; traceback.print_exc(); print("ERR", name, repr(e)[:300], flush=True)
