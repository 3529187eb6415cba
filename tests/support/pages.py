"""What a page of lancet holds: the documents that its script makes it of."""
import json
import re


def documents_of(html):
    (text,) = re.findall(r'<script type="application/json" id="documents">(.*?)</script>', html, re.S)
    return json.loads(text)
