import { sidProblem, uniqueTemplates } from '../domain/chat/rules.ts';
import { ServiceError } from '../domain/errors.ts';
import {
  LANGUAGE_LENGTH,
  TEMPLATE_NAME_LENGTH,
  TEMPLATE_VARIABLE_LENGTH,
  TEMPLATE_VARIABLES,
  TEMPLATES_PER_NUMBER,
} from '../domain/limits.ts';
import { characters, controlProblem } from '../lib/text.ts';
import type { NumberTemplate } from '../store/chat/numbers.ts';
import { readCsv } from './csv.ts';

/**
 * Parses the templates of a number, one per line: name, language, content SID and variables, separated by commas.
 * @throws ServiceError validation_error with the line number
 */
export function readTemplates(text: string, param: string): NumberTemplate[] {
  const rows = readCsv(text, param);
  const templates = rows.map(({ line, cells: [name = '', language = '', content_sid = '', ...variables] }) => {
    const problem =
      lengthProblem('name', name, TEMPLATE_NAME_LENGTH) ??
      lengthProblem('language', language, LANGUAGE_LENGTH) ??
      prefixed('content', sidProblem('HX', content_sid)) ??
      (variables.length > TEMPLATE_VARIABLES ? `must have at most ${TEMPLATE_VARIABLES} variables` : undefined) ??
      variables.map((variable) => lengthProblem('variable', variable, TEMPLATE_VARIABLE_LENGTH)).find(Boolean);
    if (problem !== undefined) throw new ServiceError('validation_error', `line ${line}: ${problem}`, param);
    return { name, language, content_sid, variables };
  });
  if (templates.length > TEMPLATES_PER_NUMBER) {
    throw new ServiceError('validation_error', `must be at most ${TEMPLATES_PER_NUMBER} templates`, param);
  }
  const twice = uniqueTemplates(templates);
  if (twice) {
    const row = rows[Number.parseInt(twice.path ?? '0', 10)];
    throw new ServiceError('validation_error', `line ${row?.line ?? 1}: the template ${twice.message}`, param);
  }
  return templates;
}

function lengthProblem(what: string, text: string, most: number): string | undefined {
  if (text === '' || characters(text) > most) return `its ${what} must be 1 to ${most} characters`;
  return prefixed(what, controlProblem(text));
}

function prefixed(what: string, problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `its ${what} ${problem}`;
}
