import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import type { ServiceError } from '../../domain/errors.ts';
import { FAULTS_PER_RESPONSE } from '../../domain/limits.ts';
import { toWholeNumber } from '../../intake/schema-validation.ts';
import { startTimeSlices } from '../../intake/time-slices.ts';
import { type FindFaults, makeFaultFinder, type Property, schemaProperties } from './faults.ts';

/**
 * Compiles schemas for request bodies, parameters and query strings. Values are not coerced, except whole numbers in query
 * strings, which contain only text. Unknown fields are errors, so that callers notice mistakes.
 */
export function makeValidatorCompiler(): FastifySchemaCompiler<TSchema> {
  const compile = makeFaultFinder();
  return ({ schema, httpPart }) => {
    // `idempotency.ts` checks Idempotency-Key before the fields of the body.
    if (httpPart === 'headers') return () => true;
    const long = Object.entries(schemaProperties(schema)).find(([, property]) => property['x-sliced']);
    if (long) {
      const [name, { items = {}, ...property }] = long;
      const outer = { ...schema, properties: { ...schemaProperties(schema), [name]: property as Property } };
      return validateInSlices(name, compile(outer, 'field', name), compile(items, 'item'));
    }
    const isQuery = httpPart === 'querystring';
    const findFaults = compile(schema, isQuery ? 'parameter' : 'field');
    return (value: unknown) => {
      if (isQuery) readNumbers(schema, value as Record<string, unknown>);
      const [error, ...others] = findFaults(value);
      return error ? { error: error.and(others) } : true;
    };
  };
}

function readNumbers(schema: TSchema, query: Record<string, unknown>): void {
  for (const [name, { type }] of Object.entries(schemaProperties(schema))) {
    const text = query[name];
    if (type === 'integer' && typeof text === 'string') query[name] = toWholeNumber(text);
  }
}

/** An error in one item of a long array. The items before it are valid. */
export interface ItemError extends ServiceError {
  readonly itemIndex: number;
}

/** Validates the body without the items of the array `name`, then each item. Yields to other requests in between. */
function validateInSlices(name: string, findOuter: FindFaults, findInner: FindFaults) {
  const validate = async (value: unknown): Promise<true> => {
    const faults = findOuter(value);
    let itemIndex: number | undefined;
    // An array that is too long is not examined further.
    const items = faults.some(({ param }) => param === undefined || param === name) ? [] : itemsOf(value, name);
    const yieldIfDue = startTimeSlices();
    for (const [index, item] of items.entries()) {
      const found = findInner(item);
      if (found.length > 0 && faults.length === 0) itemIndex = index;
      faults.push(...found.map((fault) => fault.within(`${name}.${index}`)));
      if (faults.length >= FAULTS_PER_RESPONSE) break;
      await yieldIfDue();
    }
    const [error, ...others] = faults.slice(0, FAULTS_PER_RESPONSE);
    if (error) throw Object.assign(error.and(others), itemIndex === undefined ? {} : { itemIndex });
    return true;
  };
  // Fastify accepts promises, but its types require a type that only Fastify declares.
  return validate as unknown as ReturnType<FastifySchemaCompiler<TSchema>>;
}

function itemsOf(body: unknown, name: string): readonly unknown[] {
  return (body as Record<string, readonly unknown[] | undefined>)[name] ?? [];
}
