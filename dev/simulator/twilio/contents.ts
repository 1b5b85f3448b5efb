/** A content of Twilio's Content API, which is a template of WhatsApp. */
export interface Content {
  readonly sid: string;
  readonly name: string;
  readonly language: string;
  /** Examples for its variables. */
  readonly variables: Readonly<Record<string, string>>;
  readonly types: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The text that the recipient sees. */
  readonly body: string;
}

/** The contents of every account: one without variables, and one with variables in header, body and a button. */
export const CONTENTS: readonly Content[] = [
  {
    sid: 'HX00000000000000000000000000000001',
    name: 'hello_world',
    language: 'en_US',
    variables: {},
    body: 'Hello! This is how a template arrives.',
    types: { 'twilio/text': { body: 'Hello! This is how a template arrives.' } },
  },
  {
    sid: 'HX00000000000000000000000000000002',
    name: 'order_update',
    language: 'en_US',
    variables: { 1: '1042', 2: 'Ada', 3: 'Friday', 4: '1042' },
    body: 'Hello {{2}}, your order will arrive on {{3}}.',
    types: {
      'whatsapp/card': {
        body: 'Hello {{2}}, your order will arrive on {{3}}.',
        header_text: 'Order {{1}}',
        footer: null,
        media: null,
        actions: [{ type: 'URL', title: 'Where it is', url: 'https://example.com/orders/{{4}}' }],
      },
    },
  },
];

/** Returns the text that the recipient sees. */
export function render({ body }: Content, values: Readonly<Record<string, string>>): string {
  return body.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? '');
}

/** A row of `GET /v1/ContentAndApprovals`, https://www.twilio.com/docs/content/content-api-resources. */
export function approvalRecord({ sid, name, language, variables, types }: Content, account: string): object {
  return {
    sid,
    account_sid: account,
    friendly_name: name,
    language,
    variables,
    types,
    approval_requests: {
      name,
      category: 'UTILITY',
      content_type: Object.keys(types)[0],
      status: 'approved',
      rejection_reason: '',
      allow_category_change: true,
    },
    date_created: '2026-01-01T00:00:00Z',
    date_updated: '2026-01-01T00:00:00Z',
  };
}
