"""The plain version of each method: edit(bench, section, batches) gives the changes of each batch of requests, by weight."""
import chunks
import crispedit
import memit_family
import nse
import rome
import training
import zerounlearn


def memit(bench, section, batches):
    return (chunks if section["values"].get("chunk_tokens") else memit_family).edit(bench, section, batches)


METHODS = {
    "memit": memit,
    "emmet": memit_family.edit,
    "alphaedit": memit_family.edit,
    "pmet": memit_family.edit,
    "evoedit": memit_family.edit,
    "betaedit": memit_family.edit,
    "nse": nse.edit,
    "rome": rome.edit,
    "r-rome": rome.edit,
    "ultraedit": training.ultraedit,
    "stableedit": training.ultraedit,
    "ft": training.fine_tune,
    "ft-l": training.fine_tune,
    "ft-m": training.fine_tune,
    "crispedit": crispedit.edit,
    "zerounlearn": zerounlearn.edit,
}
