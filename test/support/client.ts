import type { FirstRun } from '../../dev/first-run.ts';

/** The fields of API responses that tests read. Each response has those of its resource. */
export interface Answer {
  id: string;
  email: string;
  status: string;
  subject: string;
  thread_id: string;
  inbox_id: string;
  rfc_message_id: string;
  text_body: string;
  extracted_text: string;
  secret: string;
  message_count: number;
  attachment_ids: string[];
  has_attachments: boolean;
  recipients: { email: string; status: string; status_code: string | null }[];
  send_status: string;
  code: string;
  data: Answer[];
  [field: string]: unknown;
}

export interface Reply {
  status: number;
  headers: Headers;
  body: Answer;
}

export type Call = (
  method: string,
  path: string,
  body?: object,
  headers?: Record<string, string>,
) => Promise<Reply>;

/** A client of the HTTP API with a key. Paths are relative to `/api/v1`. */
export function apiClient(service: Pick<FirstRun, 'base_url'>, key: string): Call {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${service.base_url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : {} };
  };
}
