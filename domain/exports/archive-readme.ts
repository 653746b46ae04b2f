/** Format and version in `manifest.json`. A change that breaks readers needs a new version (docs/export.md). */
export const EXPORT_FORMAT = 'agent-email-export';
export const EXPORT_FORMAT_VERSION = 1;

export const README = `This archive contains all data of an organization in its agent email service.

manifest.json       contents of the archive: counts of rows and files
data/*.jsonl        one file per table, one JSON object per line, UTF-8
messages/*.eml      each message exactly as it was sent or received
attachments/*/*     files of messages and drafts, one folder each

"file" in data/messages.jsonl and data/attachments.jsonl is a path in this archive. Files that storage no longer had are
listed in data/missing_files.jsonl. Usage and metrics (data/usage_*.jsonl, data/metric_hours.jsonl) include messages that
were deleted. No file contains secrets (keys, passwords, private keys).

The format is described in docs/export.md of the service.
`;
