import { Ajv, type ErrorObject } from 'ajv';
import type { DataValidateFunction } from 'ajv/dist/types/index.js';
import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { type Problem, ServiceError } from '../domain/errors.ts';
import { type RuleName, RULES } from '../domain/rules.ts';
import { shortParam } from './errors.ts';

/** Which type of value a rule looks at; values of other types are the schema's business. */
const RULE_TYPES: Readonly<Record<RuleName, 'string' | 'array' | 'object'>> = {
  mailbox: 'string',
  'one-line': 'string',
  body: 'string',
  instant: 'string',
  headers: 'object',
  'unique-tags': 'array',
  'some-body': 'object',
};

/**
 * Compiles schemas for request bodies, parameters and query strings. Values are taken as they are, never coerced, and
 * unknown fields are errors: a caller should learn of his mistake, not find a part of his request dropped.
 */
export function makeValidatorCompiler(): FastifySchemaCompiler<TSchema> {
  const ajv = new Ajv({ allowUnionTypes: true, verbose: true, formats: { 'date-time': true } });
  ajv.addKeyword({
    keyword: 'x-rule',
    type: ['string', 'array', 'object'],
    schemaType: 'string',
    errors: 'full',
    compile: (name: RuleName) => {
      const check = RULES[name] as (value: unknown) => Problem | undefined;
      const validate: DataValidateFunction = (value: unknown) => {
        if (typeOf(value) !== RULE_TYPES[name]) return true;
        const problem = check(value);
        validate.errors = problem ? [{ keyword: 'x-rule', params: problem }] : [];
        return problem === undefined;
      };
      return validate;
    },
  });
  return ({ schema, httpPart }) => {
    const validate = ajv.compile(schema);
    const noun = httpPart === 'querystring' ? 'parameter' : 'field';
    return (value: unknown) => (validate(value) ? true : { error: toError(validate.errors?.[0], noun) });
  };
}

function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}

function toError(error: ErrorObject | undefined, noun: string): ServiceError {
  if (!error) return new ServiceError('validation_error', 'the request is invalid');
  const { path, message } = describe(error, noun);
  const param = [...pointer(error.instancePath), ...(path === undefined ? [] : [path])].join('.');
  return new ServiceError('validation_error', message, param ? shortParam(param) : undefined);
}

/** A JSON pointer's parts (RFC 6901). */
function pointer(instancePath: string): string[] {
  return instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** What a broken schema keyword means, in words for people. */
function describe({ keyword, params, parentSchema, instancePath }: ErrorObject, noun: string): Problem {
  const schema = (parentSchema ?? {}) as {
    minLength?: number;
    maxLength?: number;
    minItems?: number;
    maxItems?: number;
  };
  const given = params as Record<string, unknown>;
  switch (keyword) {
    case 'x-rule':
      return given as unknown as Problem;
    case 'required':
      return { path: given['missingProperty'] as string, message: 'is required' };
    case 'additionalProperties':
      return { path: given['additionalProperty'] as string, message: `is not a known ${noun}` };
    case 'type':
      return { message: typeProblem(given['type'] as string | string[], instancePath === '') };
    case 'minLength':
    case 'maxLength':
      return { message: `must be ${range(schema.minLength, schema.maxLength)} characters` };
    case 'minItems':
    case 'maxItems':
      return { message: `must hold ${range(schema.minItems, schema.maxItems)} items` };
    case 'enum':
      return { message: `must be one of ${(given['allowedValues'] as unknown[]).join(', ')}` };
    case 'pattern':
      return { message: 'may hold only letters, digits, _ and -' };
    default:
      return { message: 'is invalid' };
  }
}

function range(min: number | undefined, max: number | undefined): string {
  return min ? `${min} to ${max}` : `at most ${max}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  array: 'an array',
  object: 'an object',
  boolean: 'true or false',
};

function typeProblem(types: string | string[], wholeBody: boolean): string {
  if (wholeBody) return 'the request body must be a JSON object';
  const names = [types].flat().flatMap((type) => TYPE_NAMES[type] ?? []);
  return `must be ${names.join(' or ')}`;
}
