import json
import sys
import zipfile
from email import message_from_bytes, policy

with zipfile.ZipFile(sys.argv[1]) as archive:
    manifest = json.loads(archive.read('manifest.json'))
    missing = {json.loads(line)['file'] for line in archive.open('data/missing_files.jsonl')}
    for line in archive.open('data/messages.jsonl'):
        message = json.loads(line)
        if message['file'] and message['file'] not in missing:
            email = message_from_bytes(archive.read(message['file']), policy=policy.default)
            print(message['id'], message['status'], email['subject'])
