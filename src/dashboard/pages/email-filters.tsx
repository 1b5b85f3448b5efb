import { type Static, Type } from 'typebox';
import { BOUNCE_REASONS, EMAIL_STATUSES, type Tag } from '../../domain/email/email.ts';
import { parseAddressFilter, wordsOf, wordsProblem } from '../../domain/email/search.ts';
import { parseTag } from '../../domain/email/tag-filter.ts';
import { parseInstant } from '../../domain/instant.ts';
import { TAGS } from '../../domain/limits.ts';
import type { EmailFilters } from '../../store/emails/lists.ts';
import { choices, field, FilterMenu, Filters, optionsOf, select } from '../form-elements.tsx';
import { type FormInput, queryOf, valueOf } from '../forms.ts';
import { exactZonedValue, firstInstant, startOfDay } from '../instants.ts';
import { type Context, type FormState, type Html, zoneOf } from '../page.ts';

export const Query = Type.Object({
  /** An address, `@domain`, or words of the subject. */
  q: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  status: Type.Optional(Type.Array(Type.Enum([...EMAIL_STATUSES]))),
  bounce_reason: Type.Optional(Type.Enum([...BOUNCE_REASONS])),
  /** A day or a local time in the user's time zone, or an instant. */
  created_after: Type.Optional(Type.String()),
  created_before: Type.Optional(Type.String()),
  tag: Type.Optional(Type.Array(Type.String())),
  batch_id: Type.Optional(Type.String({ maxLength: 64, 'x-rule': 'one-line' })),
  cursor: Type.Optional(Type.String()),
});

/** Parsed filters, with their text as entered. */
interface ReadFilters {
  readonly filters: EmailFilters;
  readonly formState: FormState;
  readonly isValid: boolean;
}

/** Parses the filters of a URL. */
export function readFilters(context: Context<Static<typeof Query>>): ReadFilters {
  const { query, input } = context;
  const problems: Record<string, string> = { ...context.problems };
  const parsed = <T,>(name: string, text: string | undefined, parse: (text: string) => T | string): T | null => {
    const value = text === undefined ? null : parse(text);
    if (typeof value !== 'string') return value;
    problems[name] ??= value;
    return null;
  };
  const search = parsed('q', query.q, readSearch);
  const from = parsed('from', query.from, parseAddressFilter);
  const readTime = (text: string) => readPoint(text, zoneOf(context)) ?? 'must be a day, such as 2026-03-01';
  const since = parsed('created_after', query.created_after, readTime);
  const before = parsed('created_before', query.created_before, readTime);
  const written = tagsText(query.tag);
  const tags = parsed('tag', written === '' ? undefined : written, readTags) ?? [];
  return {
    filters: {
      ...search,
      tags,
      status: query.status ?? null,
      batch_id: query.batch_id ?? null,
      from: from?.address ?? null,
      bounce_reason: query.bounce_reason ?? null,
      created_after: since?.toISOString() ?? null,
      created_before: before?.toISOString() ?? null,
    },
    formState: { input: { ...input, tag: written }, problems },
    isValid: Object.keys(problems).length === 0,
  };
}

/** Parses the text of a search box: an address if it contains an @, unless it has several words and is no address. */
function readSearch(text: string): Pick<EmailFilters, 'to' | 'subject'> | string {
  if (text.includes('@')) {
    const parsed = parseAddressFilter(text);
    if (typeof parsed === 'object') return { to: parsed.address };
    if (!/\s/.test(text.trim())) return parsed;
  }
  return wordsProblem(text) ?? { subject: wordsOf(text) };
}

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text);

/** Parses a day, a local time or an instant. */
function readPoint(text: string, timeZone: string): Date | undefined {
  return isDay(text) ? startOfDay(text, timeZone) : (parseInstant(text) ?? firstInstant(text, timeZone));
}

/** Parses `name:value` pairs that spaces or commas separate. @returns the problem of invalid ones */
export function readTags(text: string): Tag[] | string {
  const tags = splitTags(text).map(parseTag);
  if (tags.length > TAGS) return `must be at most ${TAGS} tags`;
  const known = tags.filter((tag) => tag !== undefined);
  return known.length < tags.length
    ? 'must be name:value, of letters, digits, _ and -; separate tags with spaces'
    : known;
}

/** Returns the text of the field that contains all tags; a URL has a parameter for each of them. */
export function tagsText(tags: readonly string[] = []): string {
  return tags.flatMap(splitTags).join(' ');
}

function splitTags(text: string): string[] {
  return text.split(/[\s,]+/).filter((tag) => tag !== '');
}

export function EmailFilterForm({ context, formState }: { context: Context; formState: FormState }): Html {
  const chosen = Object.entries(MORE)
    .filter(([name]) => valueOf(formState.input, name))
    .map(([, label]) => label);
  const hasProblem = Object.keys(MORE).some((name) => name in formState.problems);
  return (
    <Filters visit={context} label="Filter emails">
      {field(formState, 'q', 'Address, subject or id', {
        type: 'search',
        autocomplete: 'off',
        placeholder: 'ada@example.com',
      })}
      {choices(formState, 'status', 'Status', optionsOf(EMAIL_STATUSES).slice(1))}
      {timeField(formState, 'created_after', 'Since', zoneOf(context))}
      {timeField(formState, 'created_before', 'Before', zoneOf(context))}
      <FilterMenu label="More filters" chosen={chosen} whenEmpty="None" isOpen={hasProblem}>
        {select(formState, 'bounce_reason', MORE.bounce_reason, optionsOf(BOUNCE_REASONS))}
        {field(formState, 'from', MORE.from, { placeholder: 'Address or @domain', autocomplete: 'off' })}
        {tagField(formState)}
        {field(formState, 'batch_id', MORE.batch_id, { placeholder: 'bt_…', autocomplete: 'off' })}
      </FilterMenu>
    </Filters>
  );
}

/** The filters in the menu, with their labels. */
const MORE = { bounce_reason: 'Bounce reason', from: 'From', tag: 'Tags', batch_id: 'Batch' };

export function tagField(formState: FormState): Html {
  return field(formState, 'tag', MORE.tag, { placeholder: 'kind:receipt plan:pro', autocomplete: 'off' });
}

/** A date field, or a date and time field for the instant that a link contains. Text that neither can show keeps its form. */
function timeField(formState: FormState, name: string, title: string, timeZone: string): Html {
  const value = valueOf(formState.input, name) ?? '';
  const label = `${title} (${timeZone})`;
  if (value === '' || isDay(value)) return field(formState, name, label, { type: 'date' });
  const instant = readPoint(value, timeZone);
  const local = instant && exactZonedValue(instant, timeZone);
  if (local === undefined) return field(formState, name, label);
  const input = { ...formState.input, [name]: local };
  return field({ ...formState, input }, name, label, { type: 'datetime-local' });
}

/** Returns the query string of a list without its position, for a link to the same emails. */
export function filterQuery(input: FormInput): string {
  return queryOf({ ...input, cursor: '' });
}
