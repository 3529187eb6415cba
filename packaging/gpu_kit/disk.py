"""disk.py FOLDER GB: whether so much is free there; exit code 1 when it is not."""
import json
import shutil
import sys

folder, expected_gb = sys.argv[1], float(sys.argv[2])
free_gb = shutil.disk_usage(folder).free / 1e9
print(json.dumps({"folder": folder, "free_gb": round(free_gb, 1), "expected_gb": expected_gb}))
if free_gb < expected_gb:
    sys.exit(f"{folder}: expected {expected_gb} GB free, found {free_gb:.1f}: name another disk by TMPDIR, or a smaller --shape")
