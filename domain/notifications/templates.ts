/** What each template is filled with. Plain text throughout: rendering escapes it. */
export interface TemplateParams {
  'webhook-endpoint-disabled': {
    endpointId: string;
    environmentId: string;
    url: string;
    reason: string;
    /** As people read it; null where attempts succeeded until then. */
    failingSince: string | null;
  };
}

export type TemplateName = keyof TemplateParams;

/** A mail as it is told, whatever it is rendered to. */
export interface Letter {
  subject: string;
  /** A text is a paragraph; a list of pairs says things by name. */
  body: (string | [name: string, value: string][])[];
}

const TEMPLATES: { [Name in TemplateName]: (params: TemplateParams[Name]) => Letter } = {
  'webhook-endpoint-disabled': ({ endpointId, environmentId, url, reason, failingSince }) => ({
    subject: `Webhook endpoint disabled: ${hostOf(url)}`,
    body: [
      'One of your webhook endpoints was disabled. Its events are kept, and none is delivered until it is enabled again.',
      [
        ['Endpoint', endpointId],
        ['Environment', environmentId],
        ['URL', url],
        ['Reason', reason],
        ...(failingSince === null ? [] : [['Failing since', failingSince] as [string, string]]),
      ],
      `When the receiver works again, enable the endpoint: PATCH /api/v1/webhooks/endpoints/${endpointId} with {"disabled": false}. What waited is delivered then, oldest first.`,
    ],
  }),
};

export function writeLetter<Name extends TemplateName>(template: Name, params: TemplateParams[Name]): Letter {
  return TEMPLATES[template](params);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url.slice(0, 100);
}
