import type { ChatOutcome } from '../chat-provider.ts';
import { type ChatRefusal, classifyRefusal, type ErrorCodes, kindOfCode, sentence } from '../chat-refusals.ts';

/** The recipient has sent STOP to the sender. */
export const OPTED_OUT_CODE = 21610;

/** https://www.twilio.com/docs/api/errors */
const CODES: ErrorCodes = {
  busy: new Set([
    20429, 14107, 21611, 63017, 63018, 63038, 30001, 20500, 20503, 30008, 63001, 63010, 63012, 63013, 63023,
  ]),
  account: new Set([
    20003, 20005, 20008, 20404, 21212, 21606, 21609, 21659, 21660, 21661, 21701, 21703, 21705, 63007, 63008, 63020,
    63030, 63051,
  ]),
  refused: new Set([
    11751, 12300, 14103, 21211, 21214, 21408, 21602, 21610, 21614, 21617, 21619, 21620, 21655, 21656, 63003, 63005,
    63014, 63016, 63019, 63021, 63024, 63027, 63028, 63032, 63040, 63041, 63042, 63049, 63112,
  ]),
};

/** The meanings of some codes, for callbacks that contain only the number. */
const MEANINGS: ReadonlyMap<number, string> = new Map([
  [OPTED_OUT_CODE, 'the recipient has opted out'],
  [30003, 'the phone is switched off or out of reach'],
  [30004, 'the recipient blocks messages of the sender'],
  [30005, 'the number is unknown or not in use'],
  [30006, 'the number is a landline, or its operator cannot be reached'],
  [30007, 'an operator filtered it'],
  [30034, 'the sender is not registered for the United States'],
  [63003, 'the recipient has no account with the chat app'],
  [63005, 'the chat app did not accept its content'],
  [63014, 'the recipient has blocked the sender'],
  [63016, 'the recipient has not written for 24 hours: only a template may be sent'],
  [63018, 'the sender sends too fast for the chat app'],
  [63019, 'the file could not be fetched'],
  [63021, 'the chat app calls its content invalid'],
  [63024, 'the recipient cannot be reached by the chat app'],
  [63027, 'the template does not exist in this language'],
  [63028, 'the number of variables is not that of the template'],
  [63032, 'the recipient takes part in an experiment of the chat app'],
  [63040, 'the template was rejected'],
  [63041, 'the template is paused'],
  [63042, 'the template is disabled'],
  [63049, 'the chat app chose not to deliver it'],
]);

/** Returns a sentence for customers, with the meaning of the code if Twilio gave no reason. */
export function twilioSentence(what: string, code: number | undefined, reason?: string): string {
  return sentence(what, code, reason ?? MEANINGS.get(code ?? 0));
}

/** Classifies an unsuccessful response. The HTTP status decides for codes that are not listed. */
export function classifyTwilioRefusal(refusal: ChatRefusal): ChatOutcome {
  const { code, message = MEANINGS.get(code ?? 0) } = refusal;
  return classifyRefusal('Twilio', kindOfCode(CODES, code), { ...refusal, message });
}
