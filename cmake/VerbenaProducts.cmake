# What leaves the tree: the tool, the two libraries, their headers, and how they are found, installed and packaged.
#
#   verbena-cli    the command-line tool                      bin/verbena
#   verbena-rnic   the software RNIC behind the verbs ABI     lib/libverbena-rnic.so.0, and lib/verbena/dropin/, a
#                  directory for LD_LIBRARY_PATH in which it goes by the names of libibverbs, for programs that dlopen
#   libverbena     the middleware                             lib/libverbena.so.0.MINOR, include/verbena/
#
# Included after all rooms: a product whose rooms are missing is left out.

# The middleware as one shared library, made of the objects of its rooms. It lets out what its headers mark VERBENA_API.
# The tool and the tests link the rooms as the static libraries that they are.
set(middleware_objects)
set(middleware_needs)
foreach(room base host rdma ah datagram)
  if(TARGET verbena_${room})
    get_target_property(kind verbena_${room} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      list(APPEND middleware_objects $<TARGET_OBJECTS:verbena_${room}>)
      get_target_property(needs verbena_${room} LINK_LIBRARIES)
      list(FILTER needs EXCLUDE REGEX "^verbena(_|::)")
      list(APPEND middleware_needs ${needs})
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES middleware_needs)

set(products)
if(TARGET verbena_ah AND NOT VERBENA_FUZZ)
  add_library(libverbena SHARED ${middleware_objects})
  add_library(verbena::verbena ALIAS libverbena)
  set_target_properties(libverbena PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(libverbena PRIVATE ${middleware_needs})
  target_include_directories(libverbena PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(libverbena PUBLIC cxx_std_20)
  target_link_libraries(libverbena INTERFACE tl::expected)
  target_link_options(libverbena PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libverbena.map)
  # While 0.x each minor version is an ABI of its own: options and reports are passed by value, and grow.
  set_target_properties(libverbena PROPERTIES OUTPUT_NAME verbena VERSION ${PROJECT_VERSION}
                        SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}" EXPORT_NAME verbena
                        LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libverbena.map)
  list(APPEND products libverbena)
endif()
foreach(product verbena-cli verbena-rnic)
  if(TARGET ${product})
    list(APPEND products ${product})
  endif()
endforeach()
add_custom_target(products DEPENDS ${products})
get_property(thread_tests GLOBAL PROPERTY VERBENA_THREAD_TESTS)
add_custom_target(thread-tests DEPENDS ${thread_tests})

# Installation -------------------------------------------------------------------------------------------------------
include(CMakePackageConfigHelpers)
if(TARGET libverbena)
  install(TARGETS libverbena EXPORT verbena-targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
  install(DIRECTORY include/verbena DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
          FILES_MATCHING PATTERN "*.h")
  set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/verbena)
  install(EXPORT verbena-targets NAMESPACE verbena:: DESTINATION ${cmake_dir} COMPONENT development)
  configure_package_config_file(cmake/verbena-config.cmake.in ${PROJECT_BINARY_DIR}/verbena-config.cmake
                                INSTALL_DESTINATION ${cmake_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/verbena-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/verbena-config.cmake ${PROJECT_BINARY_DIR}/verbena-config-version.cmake
          DESTINATION ${cmake_dir} COMPONENT development)
  file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  configure_file(cmake/verbena.pc.in ${PROJECT_BINARY_DIR}/verbena.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/verbena.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()
if(TARGET verbena-rnic)
  install(TARGETS verbena-rnic LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rnic NAMELINK_SKIP)
  install(DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/verbena/dropin DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena
          COMPONENT rnic)
endif()
if(TARGET verbena-cli)
  install(TARGETS verbena-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT rnic)
endif()
foreach(part "runtime libverbena" "development libverbena-dev" "rnic libverbena-rnic")
  separate_arguments(part)
  list(GET part 0 component)
  list(GET part 1 package)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright COMPONENT ${component})
endforeach()

# Debian packages ----------------------------------------------------------------------------------------------------
# Depends is set by hand: dpkg-shlibdeps would run the RNIC's symlinks through the package of the real libibverbs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME verbena)
set(CPACK_PACKAGE_VENDOR "The Verbena authors")
set(CPACK_PACKAGE_CONTACT "The Verbena authors <verbena@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development rnic)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_IGNORE_GROUPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(cxx_runtime "libc6 (>= 2.36), libstdc++6 (>= 12), libgcc-s1")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libverbena)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS
    "${cxx_runtime}, libibverbs1 (>= 44), libnl-3-200, libnl-route-3-200, libfmt9")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Managed RDMA address handles and datagrams, over any verbs device")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libverbena-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libverbena (= ${PROJECT_VERSION}), libibverbs-dev (>= 44), libexpected-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, CMake and pkg-config files of libverbena")
set(CPACK_DEBIAN_RNIC_PACKAGE_NAME libverbena-rnic)
set(CPACK_DEBIAN_RNIC_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RNIC_PACKAGE_DEPENDS
    "${cxx_runtime}, libibverbs1 (>= 44), libisal2, libnl-3-200, libnl-route-3-200, liburcu8, libfmt9, libspdlog1.10")
set(CPACK_COMPONENT_RNIC_DESCRIPTION
    "A RoCEv2 network card in user space behind the verbs ABI, and the tool `verbena`
 Unmodified verbs programs run on it without hardware, root, kernel module or daemon.")
include(CPack)
