import json
import sys
import zipfile
from email import policy
from email.parser import BytesHeaderParser

# Reads header fields alone: Python's parser of bodies fails on mail with hundreds of nested parts, which anyone can send.
headers = BytesHeaderParser(policy=policy.default)

with zipfile.ZipFile(sys.argv[1]) as archive:
    manifest = json.loads(archive.read('manifest.json'))
    missing = {json.loads(line)['file'] for line in archive.open('data/missing_files.jsonl')}
    for line in archive.open('data/messages.jsonl'):
        message = json.loads(line)
        if message['file'] and message['file'] not in missing:
            email = headers.parsebytes(archive.read(message['file']))
            print(message['id'], message['status'], email['subject'])
