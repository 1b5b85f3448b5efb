import { Ajv, type ErrorObject, type FuncKeywordDefinition } from 'ajv';
import type { Problem } from '../domain/errors.ts';
import { type Rule, type RuleName, RULES } from '../domain/rules.ts';

type Validate = ReturnType<NonNullable<FuncKeywordDefinition['compile']>>;

/** The type of the values that a rule checks, unless they are strings. The schema rejects values of other types. */
const RULE_TYPES: Readonly<Partial<Record<RuleName, 'array' | 'object'>>> = {
  headers: 'object',
  'unique-tags': 'array',
  'some-body': 'object',
  'one-source': 'object',
  'unique-content-ids': 'array',
  'one-or-many': 'object',
  'email-or-phone': 'object',
  'chat-content': 'object',
  template: 'object',
  'chat-number': 'object',
  'unique-templates': 'array',
};

/** Creates a JSON schema validator that also checks our field rules (`x-rule`). */
export function makeSchemaValidator(options: { readonly allErrors?: boolean } = {}): Ajv {
  const ajv = new Ajv({ ...options, allowUnionTypes: true, verbose: true, formats: { 'date-time': true } });
  ajv.addKeyword('x-sliced');
  ajv.addKeyword({
    keyword: 'x-rule',
    type: ['string', 'array', 'object'],
    schemaType: 'string',
    errors: 'full',
    compile: (name: RuleName, parentSchema) => {
      const rule = RULES[name] as Rule<unknown>;
      const check = options.allErrors ? tolerant(rule) : rule;
      const validate: Validate = (value: unknown) => {
        if ((Array.isArray(value) ? 'array' : typeof value) !== (RULE_TYPES[name] ?? 'string')) return true;
        const problems = [check(value) ?? []].flat();
        validate.errors = problems.map((problem) => ({
          keyword: 'x-rule',
          params: withListHint(problem, value, parentSchema['type']),
        }));
        return problems.length === 0;
      };
      return validate;
    },
  });
  return ajv;
}

/**
 * A rule for an object or array relies on valid parts, and may throw without. A validator that looks for all errors reports these
 * parts, so that nothing is lost if such a rule finds nothing.
 */
function tolerant(rule: Rule<unknown>): Rule<unknown> {
  return (value) => {
    try {
      return rule(value);
    } catch {
      return undefined;
    }
  };
}

/** Parses a whole number. Ajv would also accept 1e1, 0x1 and blanks. Other text stays a string, whose type the schema rejects. */
export function toWholeNumber(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** Describes a failed rule, length or range. Returns undefined for other keywords, which the caller describes. */
export function describeLimit({ keyword, params, parentSchema }: ErrorObject): Problem | undefined {
  const schema = (parentSchema ?? {}) as Record<string, number | undefined>;
  switch (keyword) {
    case 'x-rule':
      return params as unknown as Problem;
    case 'minLength':
    case 'maxLength':
      if (schema['minLength'] === 1 && schema['maxLength'] === undefined) return { message: 'must not be empty' };
      return { message: `must be ${range(schema['minLength'], schema['maxLength'])} characters` };
    case 'minItems':
    case 'maxItems':
      return { message: `must have ${range(schema['minItems'], schema['maxItems'])} items` };
    case 'minimum':
    case 'maximum':
      return { message: `must be ${range(schema['minimum'], schema['maximum'])}` };
    default:
      return undefined;
  }
}

function range(min: number | undefined, max: number | undefined): string {
  if (max === undefined) return `at least ${min ?? 0}`;
  return min ? `${min} to ${max}` : `at most ${max}`;
}

/** Adds a hint to the problem of a string that contains several addresses, if an array of addresses is accepted. */
function withListHint(problem: Problem, data: unknown, types: unknown): Problem {
  const acceptsList = Array.isArray(types) && types.includes('array');
  if (!acceptsList || typeof data !== 'string' || !hasSeveralAddresses(data)) return problem;
  return { ...problem, message: `${problem.message}; give several addresses as an array` };
}

/** Returns true if a comma is between two `@`. A regular expression would take quadratic time. */
function hasSeveralAddresses(addresses: string): boolean {
  const at = addresses.indexOf('@');
  const comma = addresses.indexOf(',', at);
  return at !== -1 && comma !== -1 && addresses.includes('@', comma);
}
