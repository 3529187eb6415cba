"""Jobs on clusters (examples/clusters): each file is what its scheduler's published schema allows, and its command line, run as the scheduler would run it
on two hosts of one rank each, ends at a signal, keeps what is finished, and goes on when it is run again."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import jsonschema
import pytest
import yaml
from conftest import LANCET, ROOT, Lancet
from ports import free_port
from referencing import Registry, Resource

CLUSTERS, SCHEMAS = ROOT / "examples" / "clusters", ROOT / "tests" / "fixtures" / "clusters"
FACTS, LIMIT_S, NODES = 4, 120, range(2)
SECRET = {"LANCET_SECRET": "of this test"}

# Programs of a scheduler that is not here, as far as the batch script uses them: srun starts a task on each of two hosts and hands signals on.
SRUN = """import os, signal, subprocess, sys
tasks = []
for task in range(2):
    own = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": "2",
           "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task)}
    tasks.append(subprocess.Popen([word for word in sys.argv[1:] if not word.startswith("--export")], env=os.environ | own))
signal.signal(signal.SIGTERM, lambda *_: [task.terminate() for task in tasks])
sys.exit(max(abs(task.wait()) for task in tasks))
"""
SCONTROL = "import pathlib, sys\npathlib.Path('requeued').write_text(' '.join(sys.argv[1:]))\n"


def documents(name):
    return list(yaml.safe_load_all((CLUSTERS / name).read_text()))


@pytest.mark.parametrize("file, schema", [("kubernetes-job.yaml", "kubernetes"), ("trainjob.yaml", "trainjob"), ("skypilot.yaml", "skypilot")])
def test_a_file_is_what_its_scheduler_takes(file, schema):
    schemas = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    registry = Registry().with_resources([(name, Resource.opaque(each)) for name, each in schemas.items()])
    validator = jsonschema.Draft202012Validator(schemas[f"{schema}.schema.json"], registry=registry)
    for document in documents(file):
        validator.validate(document)
        misspelt = json.loads(json.dumps(document).replace('"name"', '"nmae"', 1))
        assert misspelt != document and not validator.is_valid(misspelt)


def test_mounts_secrets_and_ranks_of_a_file_fit_together():
    service, job = documents("kubernetes-job.yaml")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert {"/work", "/cache"} <= {mount["mountPath"] for mount in container["volumeMounts"]}
    words = container["command"]
    host = f"{job['metadata']['name']}-0.{pod['subdomain']}"
    assert service["metadata"]["name"] == pod["subdomain"] and words[words.index("--master") + 1].split(":")[0] == host
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert int(words[words.index("--nodes") + 1]) == job["spec"]["completions"] == job["spec"]["parallelism"]
    assert int(words[words.index("-n") + 1]) == container["resources"]["limits"]["nvidia.com/gpu"]

    (train,) = documents("trainjob.yaml")
    assert train["spec"]["trainer"]["numProcPerNode"] == train["spec"]["trainer"]["resourcesPerNode"]["limits"]["nvidia.com/gpu"]
    options = dict(line.removeprefix("#SBATCH --").split("=") for line in (CLUSTERS / "slurm.sbatch").read_text().splitlines() if "=" in line and "#SBATCH" in line)
    assert options["ntasks-per-node"] == options["gpus-per-node"]
    (sky,) = documents("skypilot.yaml")
    assert all(f"${name}" in sky["run"] for name in ("SKYPILOT_NODE_RANK", "SKYPILOT_NODE_IPS", "SKYPILOT_NUM_NODES", "SKYPILOT_NUM_GPUS_PER_NODE"))
    images = {container["image"], train["spec"]["trainer"]["image"], sky["resources"]["image_id"].removeprefix("docker:")}
    assert images == {"registry.example.com/lancet:cuda"}


# ---- what runs ----


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What one process writes, and the statistics of all runs."""
    made = Lancet(tmp_path_factory.mktemp("clusters"))
    result = made.edit(job_of(made))
    assert result.returncode == 0, result.stderr
    return made


def job_of(lancet):
    return lancet.job(requests__limit=FACTS, editor__values={"steps": 30, "lr": 0.1, "clamp": 4.0, "batch": 1}, evaluate=[], run__threads=1)


def put_programs(folder):
    """A folder for PATH with what an image or a cluster has."""
    folder.mkdir()
    for name, target in {"lancet": LANCET, "torchrun": pathlib.Path(sys.executable).parent / "torchrun"}.items():
        (folder / name).symlink_to(target)
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (folder / name).write_text(f"#!{sys.executable}\n{text}")
        (folder / name).chmod(0o755)
    return folder


def kubernetes(port, _):
    words = documents("kubernetes-job.yaml")[1]["spec"]["template"]["spec"]["containers"][0]["command"]
    words = ["1" if before == "-n" else word for before, word in zip(["", *words], words)]
    words[words.index("--master") + 1] = f"127.0.0.1:{port}"
    return [([word.replace("$(JOB_COMPLETION_INDEX)", str(node)) for word in words], SECRET) for node in NODES]


def trainer(port, folder):
    words = [word.replace("/work", str(folder)) for word in documents("trainjob.yaml")[0]["spec"]["trainer"]["command"]]
    given = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "1", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(port)} | SECRET
    return [(words, given | {"PET_NODE_RANK": str(node)}) for node in NODES]


def slurm(port, _):
    return [(["bash", str(CLUSTERS / "slurm.sbatch")], {"SLURM_JOB_ID": str(port)})]


def skypilot(port, folder):
    script = documents("skypilot.yaml")[0]["run"].replace("/work", shlex.quote(str(folder))).replace(":29500", f":{port}")
    given = {"SKYPILOT_NUM_GPUS_PER_NODE": "1", "SKYPILOT_NUM_NODES": "2", "SKYPILOT_NODE_IPS": "127.0.0.1\n127.0.0.1"} | SECRET
    return [(["bash", "-c", script], given | {"SKYPILOT_NODE_RANK": str(node)}) for node in NODES]


def start(commands, folder, programs):
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    return [subprocess.Popen(words, cwd=folder, env=environment | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for words, more in commands]


def ends(processes):
    said = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
    return [process.returncode for process in processes], said


@pytest.mark.parametrize("scheduler", [kubernetes, trainer, slurm, skypilot], ids=lambda function: function.__name__)
def test_its_command_stops_when_told_and_goes_on_when_run_again(scheduler, reference, tmp_path):
    lancet = Lancet(tmp_path)
    job = job_of(lancet)
    job["statistics"]["cache"] = str(reference.folder / "cache")
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    programs = put_programs(tmp_path / "bin")

    first = start(scheduler(free_port(), tmp_path), tmp_path, programs)
    end = time.monotonic() + LIMIT_S
    while not any((tmp_path / "out.unfinished").glob("*.safetensors")):
        assert time.monotonic() < end and all(process.poll() is None for process in first), ends(first)
        time.sleep(0.02)
    for process in first:
        process.send_signal(signal.SIGTERM)
    codes, said = ends(first)
    assert 0 not in codes and not lancet.out.exists() and any((tmp_path / "out.unfinished").iterdir()), said
    if scheduler is slurm:
        assert codes == [143] and (tmp_path / "requeued").read_text().startswith("requeue ")

    codes, said = ends(start(scheduler(free_port(), tmp_path), tmp_path, programs))
    assert set(codes) == {0} and "taken from an interrupted run" in "".join(said), said
    assert (lancet.out / "model.safetensors").read_bytes() == (reference.out / "model.safetensors").read_bytes()
    assert json.loads((lancet.out / "report.json").read_text())["run"]["ranks"] == 2
