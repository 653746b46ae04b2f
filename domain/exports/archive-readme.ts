/** What `manifest.json` says the archive is. A change that breaks a reader is another version (docs/export.md). */
export const EXPORT_FORMAT = 'agent-email-export';
export const EXPORT_FORMAT_VERSION = 1;

export const README = `This archive holds all that an organization has in its agent email service.

manifest.json       what is in the archive: counts of rows and files
data/*.jsonl        one JSON object a line, one file a table, in UTF-8
messages/*.eml      each message as it was sent or received, byte for byte
attachments/*/*     the files of messages and drafts, a folder each

"file" in data/messages.jsonl and data/attachments.jsonl is a path in this archive. Files that storage no longer had are
listed in data/missing_files.jsonl. Usage and metrics (data/usage_*.jsonl, data/metric_hours.jsonl) are as they were counted, also
of mail that was deleted. Secrets (keys, passwords, private keys) are in no file.

The format is described in docs/export.md of the service.
`;
