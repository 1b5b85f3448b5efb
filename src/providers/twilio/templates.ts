import type { ChatTemplate, TwilioContent } from '../../domain/chat/chat.ts';
import { type Fields, isObject, objectOf } from '../json-fields.ts';
import { type TwilioAccount, twilioClient } from './client.ts';

export interface TwilioTemplate extends TwilioContent {
  readonly name: string;
  readonly language: string;
  /** False while WhatsApp's approval is pending, and if it refused, paused or disabled the template. */
  readonly isApproved: boolean;
}

/** One value of a template's components. */
interface Value {
  readonly of: 'header' | 'body' | 'button';
  /** Its variable; undefined if its position determines the variable. */
  readonly name: string | undefined;
  readonly text: string;
}

/** Thrown for a component that Twilio's contents cannot represent. */
class UnsupportedComponent extends Error {}

/** Returns the reason why Twilio cannot fill a template with these components, as a sentence; undefined if it can. */
export function componentsProblem({ components }: ChatTemplate): string | undefined {
  try {
    valuesOf(components);
    return undefined;
  } catch (error) {
    if (error instanceof UnsupportedComponent) return error.message;
    throw error;
  }
}

/** Returns the code of a template's language, which requests state as a string or an object. */
export function languageOf({ language }: ChatTemplate): string {
  return typeof language === 'string' ? language : language.code;
}

/** Returns the values of a template's text, which are visible in the message. */
export function bodyValues({ components }: ChatTemplate): string[] {
  return valuesOf(components)
    .filter(({ of }) => of === 'body')
    .map(({ text }) => text);
}

/** Returns the values of a content's variables, or why the template's components do not fit the content. */
export function fillContent(
  { components }: ChatTemplate,
  { variables }: TwilioContent,
): { readonly values: Readonly<Record<string, string>> } | { readonly problem: string } {
  const values = valuesOf(components);
  const named = new Map(values.flatMap(({ name, text }) => (name === undefined ? [] : [[name, text] as const])));
  const unknown = [...named.keys()].find((name) => !variables.includes(name));
  if (unknown !== undefined) return { problem: `The template has no variable ${unknown} at Twilio.` };
  if (values.length !== variables.length)
    return { problem: `The template has ${variables.length} variables at Twilio, not ${values.length}.` };
  // Values without a name fill the remaining variables in order.
  const unnamedTexts = values.filter(({ name }) => name === undefined).map(({ text }) => text);
  const pairs = variables.map((name) => [name, named.get(name) ?? unnamedTexts.shift()] as const);
  // A value is missing only if a name occurs twice.
  const missing = pairs.find(([, text]) => text === undefined);
  if (missing) return { problem: `The template's variable ${missing[0]} has no value.` };
  return { values: Object.fromEntries(pairs as (readonly [string, string])[]) };
}

const ORDER = ['header', 'body', 'button'] as const;
/** Buttons whose parameter fills a variable. */
const BUTTONS = new Set(['url', 'quick_reply', 'copy_code']);

/** Returns all values in the order of header, body, and buttons by their index. @throws UnsupportedComponent */
function valuesOf(components: unknown): Value[] {
  if (components === undefined || components === null) return [];
  if (!Array.isArray(components))
    throw new UnsupportedComponent('Twilio needs the components of a template as a list.');
  const parts = components.map(readComponent);
  return parts.sort((a, b) => ORDER.indexOf(a.of) - ORDER.indexOf(b.of) || a.index - b.index).flatMap(toValues);
}

interface Component {
  readonly of: Value['of'];
  readonly index: number;
  readonly parameters: readonly unknown[];
}

function readComponent(input: unknown): Component {
  const component = objectOf(input);
  const type = wordOf(component['type']);
  const of = ORDER.find((known) => known === type);
  if (!of) throw new UnsupportedComponent(`Twilio accepts no template component of type ${type}.`);
  const button = wordOf(component['sub_type']);
  if (of === 'button' && !BUTTONS.has(button))
    throw new UnsupportedComponent(`Twilio accepts no template button of type ${button}.`);
  const { parameters = [] } = component;
  if (!Array.isArray(parameters))
    throw new UnsupportedComponent(`Twilio needs the parameters of the template's ${of} as a list.`);
  return { of, index: of === 'button' ? Number(component['index'] ?? 0) : 0, parameters };
}

function toValues({ of, parameters }: Component): Value[] {
  return parameters.map((input) => {
    const parameter = objectOf(input);
    const { parameter_name: name } = parameter;
    return { of, name: typeof name === 'string' ? name : undefined, text: readParameter(parameter, of) };
  });
}

/** Returns a parameter as the text of a variable; for a file, its link. */
function readParameter(parameter: Fields, of: Value['of']): string {
  const type = wordOf(parameter['type']);
  const value = parameter[type];
  switch (type) {
    case 'text':
    case 'payload':
    case 'coupon_code':
      if (typeof value === 'string' || typeof value === 'number') return String(value);
      break;
    case 'currency':
    case 'date_time':
      if (isObject(value) && typeof value['fallback_value'] === 'string') return value['fallback_value'];
      break;
    case 'document':
      if (isObject(value) && value['filename'] != null)
        throw new UnsupportedComponent('Twilio accepts documents without a file name.');
      if (isObject(value) && typeof value['link'] === 'string') return value['link'];
      break;
    case 'image':
    case 'video':
      if (isObject(value) && typeof value['link'] === 'string') return value['link'];
      break;
    default:
  }
  throw new UnsupportedComponent(`Twilio accepts no such parameter of type ${type} in the template's ${of}.`);
}

/**
 * Lists the contents of an account that are WhatsApp templates, by `GET /v1/ContentAndApprovals` of Twilio's Content API. If
 * several have one name and language, returns one that is approved. Rejects if the request fails.
 */
export async function fetchTwilioTemplates(account: TwilioAccount): Promise<TwilioTemplate[]> {
  // According to the SDK's types, none of it is null.
  const contents: readonly ListedContent[] = await twilioClient(account).content.v1.contentAndApprovals.list({
    pageSize: 500,
  });
  const templates = new Map<string, TwilioTemplate>();
  const approvedFirst = contents.toSorted((a, b) => Number(isApproved(b)) - Number(isApproved(a)));
  for (const content of approvedFirst) {
    const { sid: contentSid, language, types, approvalRequests } = content;
    const name = approvalRequests?.['name'];
    if (typeof name !== 'string' || name === '') continue;
    const key = `${name} ${language}`;
    const variables = orderOf(types, Object.keys(content.variables ?? {}));
    if (!templates.has(key))
      templates.set(key, { name, language, contentSid, variables, isApproved: isApproved(content) });
  }
  return [...templates.values()];
}

interface ListedContent {
  readonly sid: string;
  readonly language: string;
  readonly types: Fields | null;
  readonly variables: Fields | null;
  readonly approvalRequests: Fields | null;
}

function isApproved({ approvalRequests }: ListedContent): boolean {
  return approvalRequests?.['status'] === 'approved';
}

const HEADERS = ['header_text', 'title', 'media'];
const BUTTON_LISTS = ['actions', 'code'];

/** Returns the variables in the order of header, body and buttons; variables that occur in none of them come last. */
function orderOf(types: Fields | null, names: readonly string[]): string[] {
  const fields = objectOf(Object.values(types ?? {})[0]);
  const body = Object.keys(fields).filter((field) => !HEADERS.includes(field) && !BUTTON_LISTS.includes(field));
  const text = [...HEADERS, ...body, ...BUTTON_LISTS].map((field) => JSON.stringify(fields[field] ?? '')).join();
  const seen = Array.from(text.matchAll(/\{\{\s*(\w+)\s*\}\}/g), ([, name]) => name as string);
  return [...new Set([...seen.filter((name) => names.includes(name)), ...names])];
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase().slice(0, 40).toWellFormed() : 'unknown';
}
