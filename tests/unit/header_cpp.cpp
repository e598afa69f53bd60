// The public header in C++11: it compiles, and a plan can be asked for with nothing but its size set.
#include <oomsight/oomsight.h>

int main()
{
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    oomsight_plan *plan = nullptr;
    return oomsight_plan_create(&params, &plan, nullptr) == OOMSIGHT_USAGE ? 0 : 1; // "a plan needs data"
}
