import type { TestContext } from 'node:test';
import type { ChatContent, OutgoingChat } from '../../src/domain/chat/chat.ts';
import { metaProvider } from '../../src/providers/meta/meta.ts';
import { twilioProvider, type TwilioSettings } from '../../src/providers/twilio/twilio.ts';
import { fetchTwilioTemplates } from '../../src/providers/twilio/templates.ts';
import type { InboxChat } from '../../dev/simulator/inbox/message.ts';
import type { SimulatorOptions } from '../../dev/simulator/simulator.ts';
import { simulator } from './simulator.ts';

export const ACCOUNT = { accountSid: `AC${'0'.repeat(32)}`, authToken: 'auth-token' };
export const ACCESS_TOKEN = 'access-token';
export const PUBLIC_URL = 'https://mail.example.com';
/** What Meta calls the number. */
export const PHONE_NUMBER_ID = '106540352242922';
export const FROM = '+4915100000000';

let count = 0;

/** A text as the store would hand it over, to a number of its own. */
export function chat(
  content: Partial<ChatContent> = { text: 'Hi.' },
  fields: Partial<OutgoingChat> = {},
): OutgoingChat {
  const { template, image, document } = content;
  return {
    id: `wa_${String(++count).padStart(26, '0')}`,
    type: template ? 'template' : image ? 'image' : document ? 'document' : 'text',
    from: FROM,
    to: `+49151${String(1_000_010 + count)}`,
    content: { text: null, preview_url: false, template: null, image: null, document: null, ...content },
    ...fields,
  };
}

/** The Twilio provider for a base URL, with the templates of the account there. */
export function twilioAt(baseUrl: string, settings: Partial<TwilioSettings> = {}) {
  const account = { ...ACCOUNT, baseUrl, timeoutSeconds: 30 };
  return twilioProvider({
    ...account,
    publicUrl: PUBLIC_URL,
    contentOf: async (name, language) =>
      (await fetchTwilioTemplates(account)).find((one) => one.name === name && one.language === language),
    ...settings,
  });
}

/** The Meta provider for a base URL. */
export function metaAt(baseUrl: string, timeoutSeconds = 5) {
  return metaProvider({ phoneNumberId: PHONE_NUMBER_ID, accessToken: ACCESS_TOKEN, baseUrl, timeoutSeconds });
}

/** Simulated chat providers with these credentials; they end with the test. */
export async function chatSimulator(t: TestContext, options: Partial<SimulatorOptions> = {}) {
  const { chatUrl, inboxUrl, inbox, behave } = await simulator(t, {
    twilioAccount: { sid: ACCOUNT.accountSid, token: ACCOUNT.authToken },
    metaToken: ACCESS_TOKEN,
    ...options,
  });
  return { chatUrl, inboxUrl, behave, inbox: () => inbox<InboxChat>() };
}
