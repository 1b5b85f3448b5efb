import { type SecondFactorDeps, secondFactorSeal } from '../accounts/second-factor.ts';
import { reportWrongCodes } from '../intake/account-notices.ts';
import type { DashboardDeps } from './page.ts';

export function secondFactorDeps(deps: DashboardDeps): SecondFactorDeps {
  return {
    pool: deps.pool,
    seal: secondFactorSeal(deps.secretKey),
    reportWrongCodes: ({ email }) => reportWrongCodes(deps, email),
  };
}
